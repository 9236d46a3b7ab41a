#include "tokenizer/bpe/byte_merge.h"

namespace tokamak {

size_t ByteMerger::merge_short(std::string_view text, uint32_t* ids, size_t least) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t n = text.size();
  uint32_t ranks[kShort];
  for (size_t i = 0; i < n; ++i) ids[i] = (*byte_ids_)[bytes[i]];
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = pairs_->rank_of_bytes(bytes[i], bytes[i + 1]);
  return symbols_.merge_short(ids, ranks, n, least);
}

size_t ByteMerger::merge_long(std::string_view text, uint32_t* ids) {
  symbols_.start(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool last = i + 1 == text.size();
    symbols_.push((*byte_ids_)[byte],
                  last ? PairTable::kNoRank : pairs_->rank_of_bytes(byte, static_cast<uint8_t>(text[i + 1])));
  }
  return symbols_.finish(ids);
}

}  // namespace tokamak
