// Caches the ids of pretokens of 16 to 96 bytes. The memory is bounded: a full cache is cleared. A search ends after a
// fixed number of slots.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/zeroed_pages.h"

namespace tokamak {

class LongCache {
 public:
  static constexpr size_t kLongest = 96;  // bytes; longer pretokens rarely repeat

  explicit LongCache(int64_t most_bytes = int64_t{16} << 20);

  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots()[hash & mask_]); }
  std::span<const uint32_t> find(std::string_view text, uint64_t hash) const;  // empty: not there

  // `text` must not be in the cache, and has at most kLongest bytes. `ids` is not empty.
  void insert(std::string_view text, uint64_t hash, std::span<const uint32_t> ids);

  int64_t bytes() const;

 private:
  struct alignas(32) Slot {
    uint64_t hash;
    uint32_t key;     // offset in keys_
    uint32_t ids;     // offset in ids_
    uint32_t count;   // of ids
    uint32_t length;  // of the key; 0: free
  };

  Slot* slots() const { return static_cast<Slot*>(pages_.data()); }
  Slot* free_slot(uint64_t hash);
  void grow();

  size_t most_bytes_;
  ZeroedPages pages_;
  size_t mask_;
  size_t size_ = 0;
  std::string keys_;
  std::vector<uint32_t> ids_;
};

}  // namespace tokamak
