// Caches the ids of pretokens of 16 to 96 bytes. The memory is bounded: a full cache is cleared. A search ends after a
// fixed number of slots.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/zeroed_pages.h"

namespace tokamak {

class LongCache {
 public:
  static constexpr size_t kLongest = 96;  // bytes; longer pretokens rarely repeat

  explicit LongCache(int64_t most_bytes = int64_t{32} << 20);

  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots()[hash & mask_]); }
  // After prefetch() and some other work: the record that the first slot names.
  void prefetch_record(uint64_t hash) const { __builtin_prefetch(records_.data() + slots()[hash & mask_].record); }
  std::span<const uint32_t> find(std::string_view text, uint64_t hash) const;  // empty: not there

  // `text` must not be in the cache, and has at most kLongest bytes. `ids` is not empty.
  void insert(std::string_view text, uint64_t hash, std::span<const uint32_t> ids);

 private:
  struct Slot {
    uint32_t tag;     // the upper half of the hash
    uint32_t record;  // index in records_; 0: free
  };

  Slot* slots() const { return static_cast<Slot*>(pages_.data()); }
  Slot* free_slot(uint64_t hash);
  void grow();
  void clear();

  size_t most_bytes_;
  ZeroedPages pages_;
  size_t mask_;
  size_t size_ = 0;
  std::vector<uint32_t> records_;  // each is {lower half of the hash, length << 16 | number of ids}, the ids, the bytes
};

}  // namespace tokamak
