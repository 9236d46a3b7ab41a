// The pieces that a pretoken may become without any merge, by their bytes. Threads share it, so that no thread fills
// its cache with the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/zeroed_pages.h"

namespace tokamak {

class PieceTable {
 public:
  // Maximum numbers of pieces that are as long as a PretokenKey at most, and longer.
  PieceTable(size_t short_pieces, size_t long_pieces) : short_(short_pieces), long_(long_pieces), records_(1, '\0') {}

  // `hash` is hash_text(text). False, and nothing changes: more than kLongestRun slots from its own are taken. Only
  // texts that were chosen to collide do that. So a search is short, too.
  bool add(std::string_view text, uint64_t hash, int32_t id);
  static constexpr uint64_t kLongestRun = 256;
  void prefetch(size_t length, uint64_t hash) const { __builtin_prefetch(&slots_of(length)[hash]); }

  // The id of a piece; -1: none.
  int32_t find(std::string_view text, uint64_t hash) const;

 private:
  struct Slot {
    uint32_t tag;     // the upper half of the hash
    uint32_t record;  // offset in records_; 0: free
  };
  // Open addressing, at most half full.
  struct Slots {
    explicit Slots(size_t pieces);
    Slot& operator[](uint64_t i) const { return static_cast<Slot*>(pages.data())[i & mask]; }
    ZeroedPages pages;
    size_t mask;
  };

  const Slots& slots_of(size_t length) const { return length <= PretokenKey::kLongest ? short_ : long_; }

  // Few pieces are long, but most long pretokens are looked up. Their own table stays in the processor's caches.
  Slots short_, long_;
  std::string records_;  // each is {id, length, bytes}
};

}  // namespace tokamak
