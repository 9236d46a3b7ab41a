// Merges the bytes of one pretoken by rank.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tokenizer/bpe/symbol_merge.h"

namespace tokamak {

class ByteMerger {
 public:
  static constexpr size_t kShort = SymbolMerger::kShort;

  ByteMerger(const PairTable& pairs, const std::array<uint32_t, 256>& byte_ids)
      : pairs_(&pairs), byte_ids_(&byte_ids), symbols_(pairs) {}

  // Writes the ids of `text`, of any length below 4 GiB, and returns their number. `ids` has space for one id per byte.
  size_t merge(std::string_view text, uint32_t* ids) {
    return text.size() <= kShort ? merge_short(text, ids) : merge_long(text, ids);
  }
  // The same for at most kShort bytes. Merging stops early when `least` ids are left.
  size_t merge_short(std::string_view text, uint32_t* ids, size_t least = 1) const;

 private:
  size_t merge_long(std::string_view text, uint32_t* ids);

  const PairTable* pairs_;
  const std::array<uint32_t, 256>* byte_ids_;
  SymbolMerger symbols_;
};

}  // namespace tokamak
