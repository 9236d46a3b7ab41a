#include "data/shard_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "data/document_search.h"

namespace tokamak {

namespace {

constexpr int64_t kPointers = 256;  // index entries per read

int64_t checked_size(const std::string& path, int64_t expected) {
  std::error_code code;
  const auto size = std::filesystem::file_size(path, code);
  const std::string hint = "the copy of the data set is incomplete; `tokamak data verify` lists all its faults";
  if (code) fail(Kind::kData, str("cannot read ", path, ": ", code.message()), hint);
  if (expected >= 0 && static_cast<int64_t>(size) != expected) {
    fail(Kind::kData, str(path, " is ", size, " bytes long; its manifest says ", expected), hint);
  }
  return static_cast<int64_t>(size);
}

// Widens u16 to i32 in place: the packed ids lie in the upper half of `out`, and position i is written only after
// all ids up to it were read.
void widen(std::span<int32_t> out) {
  const auto* packed = reinterpret_cast<const std::byte*>(out.data()) + 2 * out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t id;
    std::memcpy(&id, packed + 2 * i, 2);
    out[i] = id;
  }
}

}  // namespace

Shard::Shard(const std::string& directory, const ShardInfo& info, TokenType type, FilePool& pool)
    : TokenStore(directory + "/" + info.name + ".bin", info),
      prefix_(directory + "/" + info.name),
      type_(type),
      pool_(pool) {
  checked_size(prefix_ + ".bin", info.bytes);
  checked_size(prefix_ + ".idx", info.index_bytes);
  blocks_ = std::max<int64_t>(checked_size(prefix_ + ".sum", -1) / int64_t{sizeof(uint64_t)} - kSumsHeaderWords, 0);
}

const Shard::Files& Shard::files() const {
  std::call_once(once_, [&] {
    ShardSums sums = read_sums(pool_.open(prefix_ + ".sum").file(), info().bytes, info().index_bytes);
    auto files = std::make_unique<Files>(
        Files{CheckedFile(prefix_ + ".bin", info().bytes, std::move(sums.bin), pool_),
              CheckedFile(prefix_ + ".idx", info().index_bytes, std::move(sums.idx), pool_), IndexHeader{}});
    std::array<std::byte, kIndexHeaderBytes> head{};
    const auto bytes = std::span(head).first(std::min(kIndexHeaderBytes, info().index_bytes));
    files->idx.read_at(0, bytes);
    files->header = parse_index_header(bytes, info().index_bytes, files->idx.path());
    const IndexHeader& header = files->header;
    if (header.type != element_of(type_) || header.sequences != info().documents ||
        header.document_entries != info().documents + 1) {
      fail(Kind::kData, str(files->idx.path(), " has ", header.sequences, " sequences, ", header.document_entries,
                            " document entries and tokens of ", element_name(header.type), "; its manifest says ",
                            info().documents, ", ", info().documents + 1, " and ", token_type_name(type_)));
    }
    files_ = std::move(files);
  });
  return *files_;
}

void Shard::read_ids(int64_t first, std::span<int32_t> out) const {
  const auto bytes = std::as_writable_bytes(out);
  switch (type_) {
    case TokenType::kUint16:
      files().bin.read_at(2 * first, bytes.subspan(2 * out.size()));
      return widen(out);
    case TokenType::kInt32:
      return files().bin.read_at(4 * first, bytes);
  }
}

void Shard::read_pointers(int64_t first, std::span<int64_t> out) const {
  files().idx.read_at(files().header.pointers_at() + 8 * first, std::as_writable_bytes(out));
  int64_t last = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] < last || out[i] > info().bytes || out[i] % token_bytes(type_) != 0) {
      fail(Kind::kData, str("pointer ", first + static_cast<int64_t>(i), " of ", prefix_, ".idx is ", out[i],
                            ": it should lie between ", last, " and ", info().bytes, ", on a whole token"));
    }
    last = out[i];
  }
}

void Shard::document_starts(int64_t first, int64_t count, int64_t base, std::vector<int32_t>& out) const {
  const auto read = [&](int64_t document, std::span<int64_t> starts) {
    read_pointers(document, starts);
    for (int64_t& start : starts) start /= token_bytes(type_);
  };
  append_document_starts(info().documents, first, count, base, read, out);
}

void Shard::for_each_part(const std::function<void(const DocumentPart&)>& visit) const {
  check_index();
  const auto& [bin, idx, header] = files();
  std::array<int32_t, kPointers> lengths;
  int64_t first = 0;
  for (int64_t at = 0; at < header.sequences; at += kPointers) {
    const auto piece = std::span(lengths).first(std::min(kPointers, header.sequences - at));
    idx.read_at(header.lengths_at() + 4 * at, std::as_writable_bytes(piece));
    for (const int32_t length : piece) {
      visit({first, length});
      first += length;
    }
  }
}

void Shard::sequence_lengths(int64_t first, std::span<int32_t> out) const {
  TOKAMAK_CHECK(first >= 0 && first + std::ssize(out) <= sequences(), prefix_, ": lengths from ", first);
  files().idx.read_at(files().header.lengths_at() + 4 * first, std::as_writable_bytes(out));
  const auto bad = std::find_if(out.begin(), out.end(), [](int32_t length) { return length < 0; });
  if (bad == out.end()) return;
  fail(Kind::kData, str("sequence ", first + (bad - out.begin()), " of ", prefix_, ".idx has length ", *bad));
}

void Shard::check_index() const {
  const auto& [bin, idx, header] = files();
  std::array<int64_t, kPointers> pointers;
  std::array<int64_t, kPointers> firsts;
  std::array<int32_t, kPointers> lengths;
  const auto bad = [&, &path = idx.path()](auto... what) { fail(Kind::kData, str(path, ": ", what...)); };
  int64_t expected = 0;
  for (int64_t at = 0; at <= header.sequences; at += kPointers) {
    const auto count = static_cast<size_t>(std::min(kPointers, header.sequences - at));
    const size_t entries = static_cast<size_t>(std::min(kPointers, header.document_entries - at));
    idx.read_at(header.lengths_at() + 4 * at, std::as_writable_bytes(std::span(lengths).first(count)));
    idx.read_at(header.pointers_at() + 8 * at, std::as_writable_bytes(std::span(pointers).first(count)));
    idx.read_at(header.documents_at() + 8 * at, std::as_writable_bytes(std::span(firsts).first(entries)));
    for (size_t i = 0; i < entries; ++i) {
      const int64_t document = at + static_cast<int64_t>(i);
      if (firsts[i] != document) bad("document ", document, " begins at sequence ", firsts[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      const int64_t sequence = at + static_cast<int64_t>(i);
      if (lengths[i] < 0) bad("sequence ", sequence, " has length ", lengths[i]);
      if (pointers[i] != expected) {
        bad("sequence ", sequence, " begins at byte ", pointers[i], "; the ones before it end at byte ", expected);
      }
      expected += lengths[i] * token_bytes(type_);
      if (expected > bin.size()) {
        bad("sequence ", sequence, " ends at byte ", expected, " of ", bin.size(), " in ", bin.path());
      }
    }
  }
  if (expected != bin.size()) {
    bad("its sequences end at byte ", expected, "; ", bin.path(), " has ", bin.size(), " bytes");
  }
}

}  // namespace tokamak
