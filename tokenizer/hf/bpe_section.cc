#include "tokenizer/hf/bpe_section.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestVocabId = (int64_t{1} << 24) - 1;
constexpr int64_t kMostUnusedIds = 1 << 16;  // a few bytes of a file must not reserve gigabytes

uint64_t pair_key(const BpeMerge& merge) {
  return uint64_t{static_cast<uint32_t>(merge.left)} << 32 | static_cast<uint32_t>(merge.right);
}

class MergeReader {
 public:
  MergeReader(JsonCursor& json, const VocabTable& pieces, size_t prefix_bytes)
      : json_(json), pieces_(pieces), prefix_bytes_(prefix_bytes) {}

  void read(std::vector<BpeMerge>& merges) {
    if (json_.peek() == '[') {
      read_pair();
    } else if (!read_line()) {
      return;
    }
    BpeMerge merge{static_cast<uint32_t>(merges.size()), id_of(left_), id_of(right_), -1};
    if (right_.size() < prefix_bytes_) refuse("its right part is shorter than continuing_subword_prefix");
    result_.assign(left_).append(right_.substr(prefix_bytes_));
    merge.result = id_of(result_);
    merges.push_back(merge);
  }

 private:
  void read_pair() {
    json_.expect('[');
    left_ = json_.string(left_buffer_);
    json_.expect(',');
    right_ = json_.string(right_buffer_);
    json_.expect(']');
  }

  // False: it is the version line of a merges.txt.
  bool read_line() {
    const std::string_view line = json_.string(left_buffer_);
    if (line.starts_with("#version")) return false;
    const size_t space = line.find(' ');
    left_ = line.substr(0, space);
    right_ = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (space == std::string_view::npos || right_.find(' ') != std::string_view::npos) {
      refuse(str("'", printable(line), "' is not two parts with one space between them"));
    }
    return true;
  }

  int32_t id_of(std::string_view piece) const {
    const int32_t id = pieces_.find(piece);
    if (id < 0) refuse(str("'", printable(piece), "' is not in model.vocab"));
    return id;
  }

  [[noreturn]] void refuse(const std::string& what) const { json_.refuse("model.merges: " + what); }

  JsonCursor& json_;
  const VocabTable& pieces_;
  size_t prefix_bytes_;
  std::string left_buffer_, right_buffer_, result_;
  std::string_view left_, right_;
};

}  // namespace

VocabTable read_vocab(JsonCursor& json) {
  VocabTable pieces;
  std::string buffer;
  json.expect('{');
  for (bool first = true; json.next_item(first, '}');) {
    const std::string_view piece = json.string(buffer);
    json.expect(':');
    const int64_t id = json.whole(kLargestVocabId);
    if (!pieces.add(piece, static_cast<int32_t>(id))) {
      json.refuse(str("model.vocab: the piece '", printable(piece), "' or its id ", id, " is there twice"));
    }
  }
  if (pieces.count() == 0) json.refuse("model.vocab is empty");
  if (pieces.ids() > 2 * pieces.count() + kMostUnusedIds) {
    json.refuse(str("model.vocab: ", pieces.count(), " pieces have ids up to ", pieces.ids() - 1));
  }
  return pieces;
}

void keep_last_of_pairs(std::vector<BpeMerge>& merges) {
  size_t slots = 1024;
  while (slots < 2 * merges.size()) slots *= 2;
  std::vector<uint32_t> last(slots, UINT32_MAX);  // indices of merges, by their pairs
  std::vector<bool> superseded(merges.size());
  bool any = false;
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint64_t key = pair_key(merges[i]);
    size_t slot = (key * 0x9e3779b97f4a7c15ull >> 20) & (slots - 1);
    while (last[slot] != UINT32_MAX && pair_key(merges[last[slot]]) != key) slot = (slot + 1) & (slots - 1);
    if (last[slot] != UINT32_MAX) superseded[last[slot]] = any = true;
    last[slot] = static_cast<uint32_t>(i);
  }
  if (!any) return;
  size_t kept = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (!superseded[i]) merges[kept++] = merges[i];
  }
  merges.resize(kept);
}

std::vector<BpeMerge> read_merges(JsonCursor& json, const VocabTable& pieces, size_t prefix_bytes) {
  std::vector<BpeMerge> merges;
  MergeReader reader(json, pieces, prefix_bytes);
  json.expect('[');
  for (bool first = true; json.next_item(first, ']');) reader.read(merges);
  keep_last_of_pairs(merges);
  return merges;
}

}  // namespace tokamak
