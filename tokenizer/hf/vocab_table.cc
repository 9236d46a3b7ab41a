#include "tokenizer/hf/vocab_table.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

bool VocabTable::add(std::string_view piece, int32_t id, uint32_t hash) {
  TOKAMAK_CHECK(bytes_.size() + piece.size() < kFree, "4 GiB of pieces");
  if (2 * (count_ + 1) > std::ssize(slots_)) grow();
  Slot& slot = slots_[slot_of(piece, hash)];
  if (slot.id >= 0 || has(id)) return false;
  if (id >= ids()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(piece.size())};
  bytes_ += piece;
  slot = {hash, id};
  ++count_;
  return true;
}

int32_t VocabTable::find(std::string_view piece, uint32_t hash) const { return slots_[slot_of(piece, hash)].id; }

std::string_view VocabTable::operator[](int32_t id) const {
  if (!has(id)) return {};
  const Place& place = places_[static_cast<size_t>(id)];
  return {bytes_.data() + place.begin, place.length};
}

size_t VocabTable::slot_of(std::string_view piece, uint32_t hash) const {
  size_t i = hash & mask_;
  while (slots_[i].id >= 0 && (slots_[i].hash != hash || (*this)[slots_[i].id] != piece)) i = (i + 1) & mask_;
  return i;
}

void VocabTable::grow() {
  std::vector<Slot> old(std::max<size_t>(1024, 4 * slots_.size()));
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    size_t i = slot.hash & mask_;
    while (slots_[i].id >= 0) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
}

}  // namespace tokamak
