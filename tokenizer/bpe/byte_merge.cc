#include "tokenizer/bpe/byte_merge.h"

#include <algorithm>

namespace tokamak {

void ByteMerger::merge(std::string_view text, std::vector<int32_t>& ids) {
  if (text.size() > kShort) return merge_long(text, ids);
  std::array<uint32_t, kShort> merged;
  const size_t count = merge_short(text, merged.data());
  ids.insert(ids.end(), merged.begin(), merged.begin() + static_cast<int64_t>(count));
}

size_t ByteMerger::merge_short(std::string_view text, uint32_t* ids, size_t least) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  uint32_t id[kShort];
  uint32_t rank[kShort];
  for (size_t i = 0; i < text.size(); ++i) id[i] = (*byte_ids_)[bytes[i]];
  for (size_t i = 0; i + 1 < text.size(); ++i) rank[i] = pairs_->rank_of_bytes(bytes[i], bytes[i + 1]);
  const size_t size = symbols_.merge_short(id, rank, text.size(), least);
  std::copy(id, id + size, ids);
  return size;
}

void ByteMerger::merge_long(std::string_view text, std::vector<int32_t>& ids) {
  symbols_.start(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool last = i + 1 == text.size();
    symbols_.push((*byte_ids_)[byte],
                  last ? PairTable::kNoRank : pairs_->rank_of_bytes(byte, static_cast<uint8_t>(text[i + 1])));
  }
  symbols_.finish(ids);
}

}  // namespace tokamak
