#include "tokenizer/bpe/piece_table.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace tokamak {

PieceTable::Slots::Slots(size_t pieces)
    : pages(std::bit_ceil(2 * pieces + 2) * sizeof(Slot)), mask(pages.bytes() / sizeof(Slot) - 1) {}

bool PieceTable::add(std::string_view text, uint64_t hash, int32_t id) {
  TOKAMAK_CHECK(records_.size() + text.size() < std::numeric_limits<uint32_t>::max() - 8, "4 GiB of pieces");
  const Slots& slots = slots_of(text.size());
  uint64_t i = hash;
  for (; slots[i].record != 0; ++i) {
    if (i - hash == kLongestRun) return false;
  }
  slots[i] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(records_.size())};
  const uint32_t head[] = {static_cast<uint32_t>(id), static_cast<uint32_t>(text.size())};
  records_.append(reinterpret_cast<const char*>(head), sizeof head);
  records_.append(text);
  return true;
}

int32_t PieceTable::find(std::string_view text, uint64_t hash) const {
  const Slots& slots = slots_of(text.size());
  for (uint64_t i = hash; slots[i].record != 0 && i - hash <= kLongestRun; ++i) {
    if (slots[i].tag != hash >> 32) continue;
    uint32_t head[2];
    const char* record = records_.data() + slots[i].record;
    std::memcpy(head, record, sizeof head);
    if (head[1] == text.size() && std::memcmp(record + sizeof head, text.data(), text.size()) == 0) {
      return static_cast<int32_t>(head[0]);
    }
  }
  return -1;
}

}  // namespace tokamak
