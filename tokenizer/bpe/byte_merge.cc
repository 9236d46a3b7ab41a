#include "tokenizer/bpe/byte_merge.h"

#include <algorithm>
#include <bit>
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

size_t merge_symbols(const PairTable& pairs, uint32_t* ids, uint32_t* ranks, size_t size, size_t least) {
  while (size > least) {
    const auto at = static_cast<size_t>(std::min_element(ranks, ranks + size - 1) - ranks);
    if (ranks[at] == PairTable::kNoRank) break;
    ids[at] = pairs.result(ranks[at]);
    --size;
    std::copy(ids + at + 2, ids + size + 1, ids + at + 1);
    std::copy(ranks + at + 1, ranks + size, ranks + at);
    if (at > 0) ranks[at - 1] = pairs.rank(ids[at - 1], ids[at]);
    if (at + 1 < size) ranks[at] = pairs.rank(ids[at], ids[at + 1]);
  }
  return size;
}

size_t ByteMerger::merge_short(std::string_view text, uint32_t* ids, size_t least) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t n = text.size();
  uint32_t ranks[kShort];
  for (size_t i = 0; i < n; ++i) ids[i] = (*byte_ids_)[bytes[i]];
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = pairs_->rank_of_bytes(bytes[i], bytes[i + 1]);
  return merge_symbols(*pairs_, ids, ranks, n, least);
}

size_t ByteMerger::merge_long(std::string_view text, uint32_t* ids) {
  TOKAMAK_CHECK(text.size() < kNoNode, text.size(), " bytes");
  const auto n = static_cast<uint32_t>(text.size());
  nodes_.resize(n);
  now_.clear();
  for (uint32_t i = 0; i < n; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool last = i + 1 == n;
    const uint32_t rank = last ? PairTable::kNoRank : pairs_->rank_of_bytes(byte, static_cast<uint8_t>(text[i + 1]));
    nodes_[i] = {(*byte_ids_)[byte], i == 0 ? kNoNode : i - 1, last ? kNoNode : i + 1, rank};
    if (rank != PairTable::kNoRank) now_.push_back(uint64_t{rank} << 32 | i);
  }
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
    if (nodes_[at].rank == candidate >> 32) merge_at(at);
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

void ByteMerger::merge_at(uint32_t at) {
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

// A stale candidate is detected by its rank, which is no longer that of its node. It may become valid again: the node
// then has the same rank twice among the candidates, and the second one finds the node merged.
void ByteMerger::set_rank(uint32_t at, uint32_t rank) {
  nodes_[at].rank = rank;
  if (rank == PairTable::kNoRank) return;
  const uint64_t candidate = uint64_t{rank} << 32 | at;
  if (!now_.empty() && candidate < now_.back()) {
    soon_.push_back(candidate);
    std::push_heap(soon_.begin(), soon_.end(), std::greater<uint64_t>());
  } else {
    later_.push_back(candidate);
  }
}

}  // namespace tokamak
