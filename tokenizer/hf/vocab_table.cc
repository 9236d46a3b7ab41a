#include "tokenizer/hf/vocab_table.h"

#include <algorithm>

#include "base/hash.h"

namespace tokamak {

bool VocabTable::add(std::string_view piece, int32_t id) {
  if (2 * (count_ + 1) > std::ssize(slots_)) grow();
  const size_t slot = slot_of(piece);
  if (slots_[slot] >= 0 || has(id)) return false;
  if (id >= ids()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {std::ssize(bytes_), static_cast<int32_t>(piece.size()), true};
  bytes_ += piece;
  slots_[slot] = id;
  ++count_;
  return true;
}

int32_t VocabTable::find(std::string_view piece) const { return slots_.empty() ? -1 : slots_[slot_of(piece)]; }

std::string_view VocabTable::operator[](int32_t id) const {
  if (!has(id)) return {};
  const Place& place = places_[static_cast<size_t>(id)];
  return std::string_view(bytes_).substr(static_cast<size_t>(place.begin), static_cast<size_t>(place.length));
}

size_t VocabTable::slot_of(std::string_view piece) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = xxh3_64(std::as_bytes(std::span(piece))) & mask;
  while (slots_[slot] >= 0 && (*this)[slots_[slot]] != piece) slot = (slot + 1) & mask;
  return slot;
}

void VocabTable::grow() {
  std::vector<int32_t> old(std::max<size_t>(1024, 4 * slots_.size()), -1);
  old.swap(slots_);
  for (const int32_t id : old) {
    if (id >= 0) slots_[slot_of((*this)[id])] = id;
  }
}

}  // namespace tokamak
