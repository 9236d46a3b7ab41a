#include "tokenizer/bpe/symbol_merge.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr uint32_t kNoNode = UINT32_MAX;
constexpr size_t kKeptNodes = size_t{1} << 16;  // scratch of longer pretokens is freed

// Least significant byte first; a byte that is the same in all values costs one counting pass.
void radix_sort(std::vector<uint64_t>& values, std::vector<uint64_t>& scratch) {
  if (std::is_sorted(values.begin(), values.end())) return;
  scratch.resize(values.size());
  for (int shift = 0; shift < 64; shift += 8) {
    std::array<size_t, 256> starts{};
    for (const uint64_t value : values) ++starts[value >> shift & 255];
    if (starts[values.front() >> shift & 255] == values.size()) continue;
    size_t start = 0;
    for (size_t& count : starts) start += std::exchange(count, start);
    for (const uint64_t value : values) scratch[starts[value >> shift & 255]++] = value;
    values.swap(scratch);
  }
}

}  // namespace

size_t SymbolMerger::merge_short(uint32_t* symbols, uint32_t* ranks, size_t size, size_t least) const {
  if (orders_.empty()) return merge_in_place(symbols, ranks, size, least, std::less<uint32_t>());
  return merge_in_place(symbols, ranks, size, least, [this](uint32_t a, uint32_t b) { return order(a) < order(b); });
}

void SymbolMerger::merge_short(std::vector<uint32_t>& symbols, size_t least) const {
  uint32_t ranks[kShort];
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks[i] = pairs_->rank(symbols[i], symbols[i + 1]);
  symbols.resize(merge_short(symbols.data(), ranks, symbols.size(), least));
}

void SymbolMerger::merge(std::vector<uint32_t>& symbols) {
  std::vector<uint32_t> ranks;
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks.push_back(pairs_->rank(symbols[i], symbols[i + 1]));
  merge(symbols, ranks);
}

void SymbolMerger::merge(std::vector<uint32_t>& symbols, std::vector<uint32_t>& ranks) {
  if (symbols.size() <= kShort) return symbols.resize(merge_short(symbols.data(), ranks.data(), symbols.size()));
  start(symbols.size());
  for (size_t i = 0; i + 1 < symbols.size(); ++i) push(symbols[i], ranks[i]);
  push(symbols.back(), PairTable::kNoRank);
  symbols.resize(finish(symbols.data()));
}

template <class Earlier>
size_t SymbolMerger::merge_in_place(uint32_t* id, uint32_t* rank, size_t size, size_t least, Earlier earlier) const {
  while (size > least) {
    const auto at = static_cast<size_t>(std::min_element(rank, rank + size - 1, earlier) - rank);
    if (rank[at] == PairTable::kNoRank) break;
    id[at] = pairs_->result(rank[at]);
    --size;
    std::copy(id + at + 2, id + size + 1, id + at + 1);
    std::copy(rank + at + 1, rank + size, rank + at);
    if (at > 0) rank[at - 1] = pairs_->rank(id[at - 1], id[at]);
    if (at + 1 < size) rank[at] = pairs_->rank(id[at], id[at + 1]);
  }
  return size;
}

void SymbolMerger::start(size_t size) {
  TOKAMAK_CHECK(size < kNoNode, size, " symbols");
  nodes_.clear();
  nodes_.reserve(size);
  now_.clear();
}

void SymbolMerger::push(uint32_t symbol, uint32_t rank) {
  const auto at = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({symbol, at == 0 ? kNoNode : at - 1, at + 1, rank});
  if (rank != PairTable::kNoRank) now_.push_back(uint64_t{order(rank)} << 32 | at);
}

size_t SymbolMerger::finish(uint32_t* ids) {
  if (nodes_.empty()) return 0;
  nodes_.back().next = kNoNode;
  radix_sort(now_, later_);
  later_.clear();
  soon_.clear();
  const std::greater<uint64_t> after;
  for (size_t next = 0;;) {
    uint64_t candidate;
    if (!soon_.empty() && (next == now_.size() || soon_.front() < now_[next])) {
      std::pop_heap(soon_.begin(), soon_.end(), after);
      candidate = soon_.back();
      soon_.pop_back();
    } else if (next < now_.size()) {
      candidate = now_[next++];
    } else if (!later_.empty()) {
      radix_sort(later_, now_);
      now_.swap(later_);
      later_.clear();
      next = 0;
      continue;
    } else {
      break;
    }
    const auto at = static_cast<uint32_t>(candidate);
    if (order(nodes_[at].rank) == candidate >> 32) merge_at(at);
  }
  size_t count = 0;
  for (uint32_t i = 0; i != kNoNode; i = nodes_[i].next) ids[count++] = nodes_[i].id;
  if (nodes_.capacity() > kKeptNodes) {
    nodes_ = {};
    now_ = {};
    soon_ = {};
    later_ = {};
  }
  return count;
}

void SymbolMerger::merge_at(uint32_t at) {
  Node& left = nodes_[at];
  Node& right = nodes_[left.next];
  left.id = pairs_->result(left.rank);
  left.next = right.next;
  right.rank = PairTable::kNoRank;
  if (left.next == kNoNode) {
    left.rank = PairTable::kNoRank;
  } else {
    nodes_[left.next].previous = at;
    set_rank(at, pairs_->rank(left.id, nodes_[left.next].id));
  }
  if (left.previous != kNoNode) set_rank(left.previous, pairs_->rank(nodes_[left.previous].id, left.id));
}

// A stale candidate is detected by its order, which is no longer that of its node. It may become valid again: the node
// then has the same order twice among the candidates, and the second one finds the node merged.
void SymbolMerger::set_rank(uint32_t at, uint32_t rank) {
  nodes_[at].rank = rank;
  if (rank == PairTable::kNoRank) return;
  const uint64_t candidate = uint64_t{order(rank)} << 32 | at;
  if (!now_.empty() && candidate < now_.back()) {
    soon_.push_back(candidate);
    std::push_heap(soon_.begin(), soon_.end(), std::greater<uint64_t>());
  } else {
    later_.push_back(candidate);
  }
}

}  // namespace tokamak
