#include "data/pipeline/shuffle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::array<char, 8> kMagic = {'T', 'K', 'T', 'O', 'K', 'E', 'N', 'S'};

struct RunHeader {
  std::array<char, 8> magic = kMagic;
  uint64_t documents = 0, tokens = 0;
  uint32_t token_bytes = 0, reserved = 0;
};
constexpr int64_t kHeaderBytes = 32;
static_assert(sizeof(RunHeader) == kHeaderBytes);

// The offsets of the arrays of a run.
struct RunLayout {
  explicit RunLayout(int64_t documents)
      : begins(kHeaderBytes + 8 * documents), sizes(begins + 8 * documents), ids(sizes + 4 * documents) {}
  int64_t begins, sizes, ids;
};

template <class T>
std::vector<T> read_array(const InputFile& file, int64_t offset, int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  if (count > 0) file.read_at(offset, std::as_writable_bytes(std::span(out)));
  return out;
}

template <class T>
void write_array(std::span<const T> values, OutputFile& file) {
  file.write(std::as_bytes(values));
}

}  // namespace

uint64_t shuffle_key(int64_t seed, size_t part, int64_t number) {
  return mix64(mix64(static_cast<uint64_t>(seed) ^ mix64(part + 1)) + static_cast<uint64_t>(number));
}

bool is_held_out(uint64_t key, double fraction) { return static_cast<double>(mix64(key) >> 11) * 0x1p-53 < fraction; }

void RunWriter::add(uint64_t key, std::span<const int32_t> ids, int64_t text_bytes) {
  const int64_t held = std::ssize(ids_) * 4 + std::ssize(entries_) * static_cast<int64_t>(sizeof(Entry));
  if (held > memory_ / 2) flush();  // vectors double
  entries_.push_back({key, ids_.size(), static_cast<uint32_t>(ids.size()), static_cast<uint32_t>(text_bytes)});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

void RunWriter::finish() {
  if (!entries_.empty() || runs_ == 0) flush();
}

void RunWriter::flush() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return std::tie(a.key, a.begin) < std::tie(b.key, b.begin); });
  OutputFile file(str(prefix_, "-", part_name(runs_++), ".run"), Kind::kData);
  const RunHeader header = {
      .documents = entries_.size(), .tokens = ids_.size(), .token_bytes = static_cast<uint32_t>(token_bytes(type_))};
  write_array<RunHeader>(std::span(&header, 1), file);
  std::vector<uint64_t> words;
  for (const Entry& entry : entries_) words.push_back(entry.key);
  write_array<uint64_t>(words, file);
  words.clear();
  for (uint64_t before = 0; const Entry& entry : entries_) words.push_back(before), before += entry.tokens;
  write_array<uint64_t>(words, file);
  std::vector<uint32_t> sizes;
  for (const Entry& entry : entries_) sizes.push_back(entry.text_bytes);
  write_array<uint32_t>(sizes, file);
  std::vector<uint16_t> narrow;
  for (const Entry& entry : entries_) {
    const auto ids = std::span<const int32_t>(ids_).subspan(entry.begin, entry.tokens);
    if (type_ == TokenType::kUint16) {
      narrow.assign(ids.begin(), ids.end());
      write_array<uint16_t>(narrow, file);
    } else {
      write_array<int32_t>(ids, file);
    }
  }
  file.sync();
  file.close();
  entries_.clear(), ids_.clear();
}

RunFile::RunFile(const std::string& path) : path_(path) {
  const InputFile file(path, Kind::kData);
  RunHeader header;
  if (file.size() >= kHeaderBytes) file.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
  documents_ = static_cast<int64_t>(header.documents), tokens_ = static_cast<int64_t>(header.tokens);
  token_bytes_ = header.token_bytes;
  const bool good = file.size() >= kHeaderBytes && header.magic == kMagic && documents_ >= 0 &&
                    documents_ <= file.size() && tokens_ >= 0 && tokens_ <= file.size() &&
                    (token_bytes_ == 2 || token_bytes_ == 4) &&
                    file.size() == RunLayout(documents_).ids + tokens_ * token_bytes_;
  if (!good) fail(Kind::kData, str(path, " is damaged: its size or head are not those of tokens of documents"));
}

KeySpan key_span(uint64_t index, uint64_t count) {
  const uint64_t step = UINT64_MAX / count;
  return {index * step, index + 1 == count ? UINT64_MAX : (index + 1) * step - 1};
}

// The documents of a span of keys, in memory.
class ShardMerge {
 public:
  void take(const RunFile& run, KeySpan span) {
    const InputFile file(run.path_, Kind::kData);
    const RunLayout layout(run.documents_);
    const int64_t first = lower_bound(file, run.documents_, span.first);
    const int64_t end = span.last == UINT64_MAX ? run.documents_ : lower_bound(file, run.documents_, span.last + 1);
    const int64_t count = end - first;
    if (count == 0) return;
    const auto keys = read_array<uint64_t>(file, kHeaderBytes + 8 * first, count);
    auto begins = read_array<uint64_t>(file, layout.begins + 8 * first, count);
    const auto sizes = read_array<uint32_t>(file, layout.sizes + 4 * first, count);
    begins.push_back(end == run.documents_ ? static_cast<uint64_t>(run.tokens_)
                                           : read_array<uint64_t>(file, layout.begins + 8 * end, 1).front());
    const auto from = static_cast<int64_t>(begins.front()), tokens = static_cast<int64_t>(begins.back()) - from;
    if (!std::is_sorted(begins.begin(), begins.end()) || from + tokens > run.tokens_)
      fail(Kind::kData, str(run.path_, " is damaged: its documents' begins do not ascend"));
    const size_t base = ids_.size();
    const int64_t offset = layout.ids + from * run.token_bytes_;
    if (run.token_bytes_ == 2) {
      const auto narrow = read_array<uint16_t>(file, offset, tokens);
      ids_.insert(ids_.end(), narrow.begin(), narrow.end());
    } else {
      const auto wide = read_array<int32_t>(file, offset, tokens);
      ids_.insert(ids_.end(), wide.begin(), wide.end());
    }
    for (size_t i = 0; i < keys.size(); ++i)
      documents_.push_back({keys[i], base + begins[i] - begins.front(), begins[i + 1] - begins[i], sizes[i]});
  }

  void write(DatasetWriter& writer) {
    std::stable_sort(documents_.begin(), documents_.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    for (const Document& document : documents_)
      writer.append(std::span<const int32_t>(ids_).subspan(document.begin, document.tokens), document.text_bytes);
    documents_.clear(), ids_.clear();
  }

 private:
  struct Document {
    uint64_t key, begin, tokens;
    uint32_t text_bytes;
  };
  static int64_t lower_bound(const InputFile& file, int64_t documents, uint64_t key) {
    int64_t low = 0, high = documents;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (read_array<uint64_t>(file, kHeaderBytes + 8 * middle, 1).front() < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  std::vector<Document> documents_;
  std::vector<int32_t> ids_;
};

void merge_runs(std::span<const RunFile> runs, KeySpan span, int64_t memory, DatasetWriter& writer) {
  int64_t tokens = 0, documents = 0;
  for (const RunFile& run : runs) tokens += run.tokens(), documents += run.documents();
  const double share = double(span.last - span.first) * 0x1p-64;
  // Vectors double; a span of hashes may have more than its share.
  const double bytes = 3 * share * (double(tokens) * 6 + double(documents) * 32);
  const auto pieces = static_cast<uint64_t>(bytes / double(memory)) + 1;
  const uint64_t step = (span.last - span.first) / pieces;
  ShardMerge merge;
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t first = span.first + i * step;
    const KeySpan piece = {first, i + 1 == pieces ? span.last : first + step - 1};
    for (const RunFile& run : runs) merge.take(run, piece);
    merge.write(writer);
  }
}

}  // namespace tokamak
