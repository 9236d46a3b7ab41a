#include "tokenizer/bpe_word.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace tokamak {

const std::vector<BpeWord::Part>& BpeWord::encode(std::string_view text) {
  const auto later = [](const Candidate& a, const Candidate& b) { return a.order > b.order; };
  split(text);
  heap_.clear();
  for (int32_t i = 1; i < static_cast<int32_t>(nodes_.size()); ++i) consider(i - 1, i);
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    const size_t known = heap_.size();
    merge(best);
    for (size_t end = known + 1; end <= heap_.size(); ++end) {
      std::push_heap(heap_.begin(), heap_.begin() + static_cast<int64_t>(end), later);
    }
  }
  parts_.clear();
  for (int32_t i = nodes_.empty() ? -1 : 0; i >= 0; i = nodes_[i].next) {
    const Node& node = nodes_[i];
    parts_.push_back({node.symbol, node.begin, node.length});
  }
  return parts_;
}

void BpeWord::split(std::string_view text) {
  TOKAMAK_CHECK(text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()), text.size(), " bytes");
  nodes_.clear();
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_valid_utf8(text.data() + i);
    const auto at = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({rules_->symbol(c.code), at - 1, at + 1, 0, static_cast<int64_t>(i), c.length});
    i += static_cast<size_t>(c.length);
  }
  if (!nodes_.empty()) nodes_.back().next = -1;
}

// Appends a candidate to heap_ without restoring the heap order.
void BpeWord::consider(int32_t left, int32_t right) {
  if (left < 0 || right < 0) return;
  const Node& a = nodes_[left];
  const Node& b = nodes_[right];
  const BpeRules::Merge rule = rules_->merge(a.symbol, b.symbol);
  if (rule.symbol < 0) return;
  const uint64_t order = uint64_t{rule.rank} << 32 | static_cast<uint32_t>(left);
  heap_.push_back({order, a.stamp, right, b.stamp, rule.symbol});
}

void BpeWord::merge(const Candidate& candidate) {
  const auto at = static_cast<int32_t>(candidate.order & 0xFFFFFFFFu);
  Node& left = nodes_[at];
  Node& right = nodes_[candidate.right];
  if (left.stamp != candidate.left_stamp || right.stamp != candidate.right_stamp) return;
  left.symbol = candidate.symbol;
  left.length += right.length;
  left.next = right.next;
  ++left.stamp;
  ++right.stamp;
  if (left.next >= 0) nodes_[left.next].previous = at;
  consider(left.previous, at);
  consider(at, left.next);
}

}  // namespace tokamak
