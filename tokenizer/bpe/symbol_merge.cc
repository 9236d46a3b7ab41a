#include "tokenizer/bpe/symbol_merge.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
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

SymbolMerger::SymbolMerger(const PairTable& pairs, std::span<const uint32_t> last_equals)
    : pairs_(&pairs), last_equals_(last_equals) {
  first_tied_ = 0;
  while (first_tied_ < last_equals.size() && last_equals[first_tied_] == first_tied_) ++first_tied_;
  if (first_tied_ == last_equals.size()) first_tied_ = PairTable::kNoRank;
}

size_t SymbolMerger::merge_short(uint32_t* symbols, uint32_t* ranks, size_t size, size_t least) const {
  if (size == 0) return 0;
  std::fill(ranks + size - 1, ranks + kShort, PairTable::kNoRank);
  if (size <= 8) return merge_in_lanes<1>(symbols, ranks, size, least);
  if (size <= 16) return merge_in_lanes<2>(symbols, ranks, size, least);
  return merge_in_lanes<kShort / 8>(symbols, ranks, size, least);
}

// Each symbol keeps its lane of the registers, and `alive` says which are left. So nothing moves, and no branch depends
// on where the lowest rank is.
template <int kVectors>
size_t SymbolMerger::merge_in_lanes(uint32_t* symbols, const uint32_t* ranks, size_t size, size_t least) const {
  __m256i lanes[kVectors], numbers[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    lanes[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ranks + 8 * v));
    numbers[v] = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * v));
  }
  uint64_t alive = (uint64_t{1} << size) - 1;
  const auto set_lane = [&](int lane, uint32_t rank) {
    const __m256i wanted = _mm256_set1_epi32(lane), value = _mm256_set1_epi32(static_cast<int>(rank));
    for (int v = 0; v < kVectors; ++v) {
      lanes[v] = _mm256_blendv_epi8(lanes[v], value, _mm256_cmpeq_epi32(numbers[v], wanted));
    }
  };
  for (; size > least; --size) {
    __m256i lowest = lanes[0];
    for (int v = 1; v < kVectors; ++v) lowest = _mm256_min_epu32(lowest, lanes[v]);
    lowest = _mm256_min_epu32(lowest, _mm256_permute2x128_si256(lowest, lowest, 1));
    lowest = _mm256_min_epu32(lowest, _mm256_shuffle_epi32(lowest, 0x4E));
    lowest = _mm256_min_epu32(lowest, _mm256_shuffle_epi32(lowest, 0xB1));
    auto rank = static_cast<uint32_t>(_mm256_cvtsi256_si32(lowest));
    if (rank == PairTable::kNoRank) break;
    const bool tied = rank >= first_tied_;
    if (tied) lowest = _mm256_set1_epi32(static_cast<int>(order(rank)));
    uint64_t places = 0;
    for (int v = 0; v < kVectors; ++v) {
      const __m256i is_lowest = _mm256_cmpeq_epi32(_mm256_min_epu32(lanes[v], lowest), lanes[v]);
      places |= uint64_t{static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(is_lowest)))} << 8 * v;
    }
    const int at = std::countr_zero(places);
    const uint64_t before = alive & ((uint64_t{1} << at) - 1);
    const uint64_t after = alive ^ before ^ uint64_t { 1 } << at;
    const uint64_t behind = after & (after - 1);  // without the symbol that merges into this one
    const int right = std::countr_zero(after);
    alive ^= uint64_t{1} << right;
    if (tied) rank = pairs_->rank(symbols[at], symbols[right]);
    symbols[at] = pairs_->result(rank);
    set_lane(right, PairTable::kNoRank);
    set_lane(at, behind == 0 ? PairTable::kNoRank : pairs_->rank(symbols[at], symbols[std::countr_zero(behind)]));
    if (before == 0) continue;
    const int left = std::bit_width(before) - 1;
    set_lane(left, pairs_->rank(symbols[left], symbols[at]));
  }
  for (uint32_t* out = symbols; alive != 0; alive &= alive - 1) *out++ = symbols[std::countr_zero(alive)];
  return size;
}

void SymbolMerger::merge_short(std::vector<uint32_t>& symbols, size_t least) const {
  std::array<uint32_t, kShort> ranks;
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks[i] = pairs_->rank(symbols[i], symbols[i + 1]);
  symbols.resize(merge_short(symbols.data(), ranks.data(), symbols.size(), least));
}

void SymbolMerger::merge(std::vector<uint32_t>& symbols) {
  std::vector<uint32_t> ranks(std::max(symbols.size(), kShort));
  for (size_t i = 0; i + 1 < symbols.size(); ++i) ranks[i] = pairs_->rank(symbols[i], symbols[i + 1]);
  symbols.resize(merge(symbols.data(), ranks.data(), symbols.size()));
}

size_t SymbolMerger::merge(uint32_t* symbols, uint32_t* ranks, size_t size) {
  if (size <= kShort) return merge_short(symbols, ranks, size);
  start(size);
  for (size_t i = 0; i + 1 < size; ++i) push(symbols[i], ranks[i]);
  push(symbols[size - 1], PairTable::kNoRank);
  return finish(symbols);
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
