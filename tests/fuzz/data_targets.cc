// Shards of other programs, and texts, as functions of bytes.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "data/stores/datatrove.h"
#include "data/stores/llmc.h"
#include "data/stores/mds.h"
#include "data/stores/megatron.h"
#include "data/stores/olmo.h"
#include "data/text/text_batches.h"
#include "data/text/text_reader.h"
#include "formats/compressed_stream.h"
#include "formats/json.h"
#include "formats/json_member.h"
#include "fuzz/judge.h"
#include "fuzz/samples.h"

namespace tokamak::fuzz {

namespace {

// Every part of a store that opens, and every start of a document, lies in the store. Its tokens can be read.
void walk(const TokenStore& store) {
  std::vector<int32_t> starts;
  std::vector<int32_t> ids(static_cast<size_t>(std::min<int64_t>(store.tokens(), 4096)));
  store.document_starts(0, store.tokens(), 0, starts);
  for (const int32_t start : starts) require(start >= 0 && start < store.tokens());
  int64_t parts = 0;
  store.for_each_part([&](const DocumentPart& part) {
    require(part.first >= 0 && part.tokens >= 0 && part.first + part.tokens <= store.tokens() && ++parts < 1000000);
  });
  store.read(0, std::numeric_limits<int32_t>::max(), ids);
  for (const int32_t id : ids) require(id >= 0);
}

// The same, of a store with an index of lengths.
void walk_sequences(const TokenStore& store) {
  walk(store);
  std::vector<int32_t> lengths(static_cast<size_t>(std::min<int64_t>(store.sequences(), 4096)));
  store.sequence_lengths(0, lengths);
  for (const int32_t length : lengths) require(length >= 0 && length <= store.tokens());
}

Verdict megatron(std::string_view bytes) {
  put("part.bin", std::string(16, '\1'));
  put("part.idx", bytes);
  const auto read = [](SequenceOrder order) {
    return judge(Kind::kData, [&] {
      FilePool pool;
      walk_sequences(MegatronStore(directory() + "/part", order, pool));
    });
  };
  const Verdict any = read(SequenceOrder::kAny);
  const Verdict contiguous = read(SequenceOrder::kContiguous);
  require(any == Verdict::kAccepted || contiguous == Verdict::kRefused);
  return contiguous;
}

Verdict datatrove(std::string_view bytes) {
  put("x.ds", std::string(16, '\1'));
  put("x.ds.index", bytes);
  return judge(Kind::kData, [] {
    FilePool pool;
    walk_sequences(*open_datatrove(directory() + "/x.ds", TokenElement::kAuto, -1, pool));
  });
}

Verdict datatrove_metadata(std::string_view text) {
  return judge(Kind::kData, [&] {
    const DatatroveMetadata read = parse_datatrove_metadata(text, "the file");
    require((read.token_bytes == 2 || read.token_bytes == 4) && read.tokens >= 0);
  });
}

Verdict llmc(std::string_view bytes) {
  put("x.bin", bytes);
  return judge(Kind::kData, [] {
    FilePool pool;
    walk(*open_llmc(directory() + "/x.bin", 1, pool));
  });
}

Verdict numpy(std::string_view bytes) {
  put("x.npy", bytes);
  return judge(Kind::kData, [] {
    FilePool pool;
    walk(*open_olmo(directory() + "/x.npy", TokenElement::kAuto, 1, pool));
  });
}

Verdict document_rows(std::string_view text) {
  return judge(Kind::kData, [&] {
    int64_t end = 0;
    std::vector<int64_t> starts;
    for (const std::string& row : split(text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0)), '\n')) {
      parse_document_row(row, 12, "the file", end, starts);
    }
    require(end <= 12 && std::is_sorted(starts.begin(), starts.end()) && starts[0] == 0);
  });
}

// The number of samples that a shard says, so that the index does not contradict it.
int64_t samples_said(std::string_view shard) {
  uint32_t samples = 0;
  if (shard.size() >= sizeof(samples)) std::memcpy(&samples, shard.data(), sizeof(samples));
  return std::min<int64_t>(samples, 1 << 20);
}

std::string mds_file_json(const char* name, std::string_view content) {
  return str("{\"basename\": \"", name, "\", \"bytes\": ", content.size(),
             ", \"hashes\": {\"crc32\": \"\", \"xxh3_64\": \"", hex64(xxh3_64(std::as_bytes(std::span(content)))),
             "\"}}");
}

// The index of one shard of these bytes, in the file "shard", or compressed as `compression` says.
std::string mds_index_of(const std::string& columns, std::string_view raw, const std::string& compression) {
  return str("{\"version\": 2, \"shards\": [{\"format\": \"mds\", \"version\": 2, ", columns,
             ", \"samples\": ", samples_said(raw), ", \"raw_data\": ", mds_file_json("shard", raw), ", ", compression,
             "}]}");
}

constexpr const char* kMdsColumns =
    R"("column_names": ["id", "tokens"], "column_encodings": ["str", "ndarray:uint16"], "column_sizes": [null, null])";
constexpr const char* kMdsFixedColumns =
    R"("column_names": ["n", "tokens"], "column_encodings": ["int", "ndarray:int32:2"], "column_sizes": [8, 8])";

Verdict open_and_walk_mds() {
  return judge(Kind::kData, [] {
    FilePool pool;
    walk(*open_mds(directory(), TokenElement::kAuto, pool));
  });
}

Verdict mds_index(std::string_view text) {
  put("shard", mds_sample());
  put("index.json", text);
  return open_and_walk_mds();
}

std::string mds_index_sample() {
  return mds_index_of(kMdsColumns, mds_sample(), R"("compression": null, "zip_data": null)");
}

Verdict mds(std::string_view shard) {
  put("shard", shard);
  const auto read_with = [&](const char* columns) {
    put("index.json", mds_index_of(columns, shard, R"("compression": null)"));
    return open_and_walk_mds();
  };
  static_cast<void>(read_with(kMdsFixedColumns));
  return read_with(kMdsColumns);
}

// The decompressed bytes, at most `most` of them, by reads of `step` bytes; nothing if they are damaged.
std::optional<std::string> decompressed(const std::string& path, Compression compression, size_t step, size_t most) {
  std::string all;
  const Verdict read = judge(Kind::kData, [&] {
    const std::unique_ptr<ByteStream> stream = open_stream(path, compression, Kind::kData);
    std::vector<std::byte> part(step);
    while (all.size() < most) {
      const auto got = static_cast<size_t>(stream->read(part));
      require(got <= step);
      if (got == 0) break;
      all.append(reinterpret_cast<const char*>(part.data()), got);
    }
  });
  if (read == Verdict::kRefused) return std::nullopt;
  return all.substr(0, most);
}

// The same bytes, however much a read asks for.
template <Compression kCompression>
Verdict compressed(std::string_view bytes) {
  constexpr size_t kMost = size_t{1} << 18;
  const std::string path = put("x.compressed", bytes);
  const auto large = decompressed(path, kCompression, size_t{1} << 16, kMost);
  const auto small = decompressed(path, kCompression, 1 + bytes.size() % 97, kMost);
  const bool whole = (large && large->size() < kMost) || (small && small->size() < kMost);
  require(whole ? large == small : !large || !small || *large == *small);  // damage behind kMost is seen, or not
  return large ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict mds_zstd(std::string_view zip) {
  const std::string raw = decompressed(put("zip", zip), Compression::kZstd, 4096, 1 << 16).value_or("");
  put("index.json",
      mds_index_of(kMdsColumns, raw, str(R"("compression": "zstd:7", "zip_data": )", mds_file_json("zip", zip))));
  return open_and_walk_mds();
}

Verdict text(std::string_view bytes) {
  return judge(Kind::kData, [&] { JsonDocument(bytes, {"the file"}, JsonRules::kLenient)["text"].text(); });
}

// The longest run of characters that a number may have.
int64_t longest_number(std::string_view text) {
  int64_t run = 0, longest = 0;
  for (const char c : text) {
    run = std::string_view("+-.0123456789eE").find(c) == std::string_view::npos ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

// The scanner of a member reads only what the JSON library reads, and decides every line without something rare.
Verdict json_member(std::string_view line) {
  std::optional<std::string> expected;
  const Verdict verdict = judge(Kind::kData, [&] {
    const JsonDocument json(line, {"the file"}, JsonRules::kLenient);
    expected = json["text"].text();
  });
  std::string text = "what was there before";
  const std::vector<char> exact(line.begin(), line.end());  // so that a read beyond it is found
  const bool read = read_json_text({exact.data(), exact.size()}, "text", text);
  require(!read || (expected && *expected == text));
  const bool ordinary = line.find('\\') == std::string_view::npos && line.find("\"text\"") == line.rfind("\"text\"") &&
                        longest_number(line) < 4 && !line.starts_with("\xEF");
  require(read || !expected || !ordinary);
  return verdict;
}

struct ReadTexts {
  std::vector<std::string> texts;
  std::string error;
  bool operator==(const ReadTexts&) const = default;
};

template <class Next>
ReadTexts read_texts(const Next& next) {
  ReadTexts read;
  TextParser parser("text");
  try {
    for (Document document; next(document);) {
      parser.parse(document);
      read.texts.push_back(document.text);
    }
  } catch (const Error& error) {
    require(error.kind() == Kind::kData);
    read.error = error.what();
    require(read.error.find("the file") != std::string::npos);
  }
  return read;
}

// Batches of any size have the documents, and the first error, of the file read in sequence.
ReadTexts read_every_way(const TextFile& file, int64_t most) {
  const std::vector<TextFile> files = {file};
  TextReader reader(files, most);
  const ReadTexts whole = read_texts([&](Document& document) { return reader.next(document); });
  for (const int64_t parts : {1, 3, 40}) {
    if (file.format == TextFormat::kPlain && parts != 3) continue;  // its reader takes a mebibyte each time
    const int64_t batch_bytes = 1 + file.bytes / parts;
    TextBatches batches(files, most, batch_bytes);
    std::unique_ptr<DocumentReader> batch = batches.next();
    const ReadTexts read = read_texts([&](Document& document) {
      while (batch && !batch->next(document)) batch = batches.next();
      return batch != nullptr;
    });
    require(read == whole);
  }
  return whole;
}

Verdict json_lines(std::string_view bytes) {
  const ReadTexts read = read_every_way({put("x.jsonl", bytes), TextFormat::kJsonLines, std::ssize(bytes)}, 0);
  return read.error.empty() && !read.texts.empty() ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict plain_text(std::string_view bytes) {
  const TextFile file{put("x.txt", bytes), TextFormat::kPlain, std::ssize(bytes)};
  size_t all = 0;
  for (const std::string& text : read_every_way(file, 0).texts) all += text.size();
  require(all <= bytes.size());
  const ReadTexts cut = read_every_way(file, 5);
  for (const std::string& text : cut.texts) require(text.size() <= 5);
  return cut.error.empty() ? Verdict::kAccepted : Verdict::kRefused;
}

constexpr double kEach = 1.01;  // any input is a text

constexpr Target kDataTargets[] = {
    {"megatron", megatron, megatron_sample},
    {"datatrove", datatrove, datatrove_sample},
    {"datatrove_metadata", datatrove_metadata, datatrove_metadata_sample, 20000, 0.6},
    {"llmc", llmc, llmc_sample, 1000, 0.6},
    {"numpy", numpy, numpy_sample},
    {"mds_index", mds_index, mds_index_sample},
    {"mds", mds, mds_sample, 1000, 0.5},
    {"mds_zstd", mds_zstd, [] { return zstd_frame(mds_sample()); }, 1000, 0.5},
    {"document_rows", document_rows, document_rows_sample, 20000, 0.6},
    {"gzip", compressed<Compression::kGzip>, gzip_sample},
    {"zstd", compressed<Compression::kZstd>, [] { return zstd_frame("ab\n") + zstd_frame("cd"); }},
    {"text", text, text_sample},
    {"json_member", json_member, text_sample},
    {"json_lines", json_lines, [] { return text_sample() + "\r\n \n{\"text\":\"x\"}\n" + text_sample(); }},
    {"plain_text", plain_text, [] { return std::string("a\r\n\nb\n\f\xC3\xA9 c\0d\n\f", 15); }, 1000, kEach, true},
};

}  // namespace

std::span<const Target> data_targets() { return kDataTargets; }

}  // namespace tokamak::fuzz
