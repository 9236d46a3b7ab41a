// Caches the ids of pretokens of at most 15 bytes, in entries of 32 bytes, two to a cache line. The memory is bounded:
// a full table replaces entries. A search ends after a fixed number of lines, so hostile text cannot make it slow.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/zeroed_pages.h"

namespace tokamak {

class ShortCache {
 public:
  static constexpr size_t kInline = 4;    // ids in an entry
  static constexpr int kCountShift = 24;  // of the first id, whose upper bits are the number of ids
  static constexpr uint32_t kSpilled = kInline + 1;

  // Up to 4 ids. If there are more, the second is the offset in the list of spilled ids, and the third their number.
  struct Value {
    uint64_t low = 0, high = 0;
    uint32_t count() const { return static_cast<uint32_t>(low) >> kCountShift; }
  };
  struct Entry {
    PretokenKey key;  // all zero: free
    Value value;
  };
  struct alignas(64) Line {
    Entry entries[2];
  };

  // `most_entries`: a power of two, at least 2.
  explicit ShortCache(int64_t most_entries = int64_t{1} << 21);

  void prefetch(uint64_t hash) const { __builtin_prefetch(&lines_[hash & mask_]); }

  // The value of `key` in the first line of its search, or zero if it is not there.
  Value find_first(PretokenKey key, uint64_t hash) const {
    const __m128i wanted = _mm_set_epi64x(static_cast<int64_t>(key.high), static_cast<int64_t>(key.low));
    const Line& line = lines_[hash & mask_];
    const auto value_if_wanted = [&](const Entry& entry) {
      const __m128i halves = _mm_cmpeq_epi64(_mm_load_si128(reinterpret_cast<const __m128i*>(&entry.key)), wanted);
      const __m128i both = _mm_and_si128(halves, _mm_shuffle_epi32(halves, 0x4E));
      return _mm_and_si128(both, _mm_load_si128(reinterpret_cast<const __m128i*>(&entry.value)));
    };
    const __m128i found = _mm_or_si128(value_if_wanted(line.entries[0]), value_if_wanted(line.entries[1]));
    return {static_cast<uint64_t>(_mm_cvtsi128_si64(found)), static_cast<uint64_t>(_mm_extract_epi64(found, 1))};
  }
  Value find(PretokenKey key, uint64_t hash) const;  // in all lines

  // Writes the ids of a value whose count() is not 0, and up to 3 more; returns their number.
  size_t copy(Value value, uint32_t* ids) const {
    if (value.count() > kInline) [[unlikely]]
      return copy_spilled(value, ids);
    return copy_inline(value, ids);
  }
  static size_t copy_inline(Value value, uint32_t* ids) {
    const uint64_t first_two = value.low & ~(uint64_t{0xFF} << kCountShift);
    std::memcpy(ids, &first_two, sizeof first_two);
    std::memcpy(ids + 2, &value.high, sizeof value.high);
    return value.count();
  }

  // `key` must not be in the cache.
  void insert(PretokenKey key, uint64_t hash, std::span<const uint32_t> ids);

 private:
  size_t copy_spilled(Value value, uint32_t* ids) const;
  Entry& entry_for(uint64_t hash);
  void grow();

  size_t most_lines_;
  ZeroedPages pages_;
  Line* lines_;
  size_t mask_;
  size_t size_ = 0;  // entries
  uint64_t victim_ = 0;
  std::vector<uint32_t> spilled_;
};

}  // namespace tokamak
