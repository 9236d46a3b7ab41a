#include "tokenizer/hf/bpe_section.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "base/printable.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestVocabId = (int64_t{1} << 24) - 1;
constexpr int64_t kMostUnusedIds = 1 << 16;  // a few bytes of a file must not reserve gigabytes

uint64_t pair_key(const BpeMerge& merge) {
  return uint64_t{static_cast<uint32_t>(merge.left)} << 32 | static_cast<uint32_t>(merge.right);
}

// Reads and resolves merges in batches, so that the processor fetches the slots of a batch at once.
class MergeReader {
 public:
  MergeReader(JsonCursor& json, const VocabTable& pieces, size_t prefix_bytes)
      : json_(json), pieces_(pieces), prefix_bytes_(prefix_bytes), rules_(kBatch) {}

  std::vector<BpeMerge> read() {
    std::vector<BpeMerge> merges;
    json_.expect('[');
    bool first = true;
    for (bool more = true; more;) {
      size_t count = 0;
      while (count < kBatch && (more = json_.next_item(first, ']'))) count += parse(rules_[count]) ? 1 : 0;
      for (size_t i = 0; i < count; ++i) {
        pieces_.prefetch_piece(rules_[i].left_hash);
        pieces_.prefetch_piece(rules_[i].right_hash);
      }
      for (size_t i = 0; i < count; ++i) merges.push_back(resolve(rules_[i], merges.size()));
    }
    return merges;
  }

 private:
  static constexpr size_t kBatch = 64;
  struct Rule {
    size_t end = 0;  // offset behind it
    std::string_view left, right;
    uint32_t left_hash = 0, right_hash = 0;
    std::string left_buffer, right_buffer;
  };

  // False: it is the version line of a merges.txt.
  bool parse(Rule& rule) {
    if (json_.peek() == '[') {
      parse_pair(rule);
    } else if (!parse_line(rule)) {
      return false;
    }
    rule.end = json_.offset();
    rule.left_hash = pieces_.hash(rule.left);
    rule.right_hash = pieces_.hash(rule.right);
    pieces_.prefetch_slot(rule.left_hash);
    pieces_.prefetch_slot(rule.right_hash);
    return true;
  }

  void parse_pair(Rule& rule) {
    json_.expect('[');
    rule.left = json_.string(rule.left_buffer);
    json_.expect(',');
    rule.right = json_.string(rule.right_buffer);
    json_.expect(']');
  }

  bool parse_line(Rule& rule) {
    const std::string_view line = json_.string(rule.left_buffer);
    if (line.starts_with("#version")) return false;
    const size_t space = line.find(' ');
    rule.left = line.substr(0, space);
    rule.right = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (space == std::string_view::npos || rule.right.find(' ') != std::string_view::npos) {
      refuse(str("'", printable(line), "' is not two parts with one space between them"));
    }
    return true;
  }

  BpeMerge resolve(const Rule& rule, size_t rank) {
    const int32_t left = expect_known(pieces_.find(rule.left, rule.left_hash), rule.left, rule.end);
    const int32_t right = expect_known(pieces_.find(rule.right, rule.right_hash), rule.right, rule.end);
    if (rule.right.size() < prefix_bytes_) {
      json_.skip_to(rule.end);
      refuse("its right part is shorter than continuing_subword_prefix");
    }
    last_result_ = result_of(rule);
    return {static_cast<uint32_t>(rank), left, right, last_result_};
  }

  // Most files list merges in the order of their results' ids.
  int32_t result_of(const Rule& rule) {
    const std::string_view tail = rule.right.substr(prefix_bytes_);
    for (const int32_t guess : {last_result_, last_result_ + 1}) {
      const std::string_view piece = pieces_[guess];
      if (piece.size() == rule.left.size() + tail.size() && piece.starts_with(rule.left) && piece.ends_with(tail) &&
          pieces_.has(guess)) {
        return guess;
      }
    }
    result_.assign(rule.left).append(tail);
    return expect_known(pieces_.find(result_), result_, rule.end);
  }

  int32_t expect_known(int32_t id, std::string_view piece, size_t end) const {
    if (id >= 0) return id;
    json_.skip_to(end);
    refuse(str("'", printable(piece), "' is not in model.vocab"));
  }

  [[noreturn]] void refuse(const std::string& what) const { json_.refuse("model.merges: " + what); }

  JsonCursor& json_;
  const VocabTable& pieces_;
  size_t prefix_bytes_;
  std::vector<Rule> rules_;
  std::string result_;
  int32_t last_result_ = -1;
};

}  // namespace

VocabTable read_vocab(JsonCursor& json) {
  struct Entry {
    std::string_view piece;
    int32_t id;
    uint32_t hash;
    std::string buffer;
    size_t end;
  };
  VocabTable pieces;
  std::vector<Entry> batch(64);
  json.expect('{');
  bool first = true;
  for (bool more = true; more;) {
    size_t count = 0;
    for (; count < batch.size() && (more = json.next_item(first, '}')); ++count) {
      Entry& entry = batch[count];
      entry.piece = json.string(entry.buffer);
      json.expect(':');
      entry.id = static_cast<int32_t>(json.whole(kLargestVocabId));
      entry.hash = pieces.hash(entry.piece);
      entry.end = json.offset();
      pieces.prefetch_slot(entry.hash);
    }
    for (size_t i = 0; i < count; ++i) {
      const Entry& entry = batch[i];
      if (pieces.add(entry.piece, entry.id, entry.hash)) continue;
      json.skip_to(entry.end);
      json.refuse(str("model.vocab: the piece '", printable(entry.piece), "' or its id ", entry.id, " is there twice"));
    }
  }
  if (pieces.count() == 0) json.refuse("model.vocab is empty");
  if (pieces.ids() > 2 * pieces.count() + kMostUnusedIds) {
    json.refuse(str("model.vocab: ", pieces.count(), " pieces have ids up to ", pieces.ids() - 1));
  }
  return pieces;
}

void keep_last_of_pairs(std::vector<BpeMerge>& merges) {
  // A pair has one result, so merges in the order of (result, left, right) have each pair once.
  const auto in_order = [](const BpeMerge& a, const BpeMerge& b) {
    return std::tie(a.result, a.left, a.right) >= std::tie(b.result, b.left, b.right);
  };
  if (std::adjacent_find(merges.begin(), merges.end(), in_order) == merges.end()) return;
  size_t slots = 1024;
  while (slots < 2 * merges.size()) slots *= 2;
  const uint64_t factor = unpredictable_seed() | 1;
  std::vector<uint32_t> last(slots, UINT32_MAX);  // indices of merges, by their pairs
  std::vector<bool> superseded(merges.size());
  bool any = false;
  for (size_t i = 0; i < merges.size(); ++i) {
    const uint64_t key = pair_key(merges[i]);
    size_t slot = (key * factor >> 32) & (slots - 1);
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
  std::vector<BpeMerge> merges = MergeReader(json, pieces, prefix_bytes).read();
  keep_last_of_pairs(merges);
  return merges;
}

}  // namespace tokamak
