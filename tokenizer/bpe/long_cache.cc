#include "tokenizer/bpe/long_cache.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kFirstSlots = 256;
constexpr size_t kSearchedSlots = 32;

}  // namespace

LongCache::LongCache(int64_t most_bytes)
    : most_bytes_(static_cast<size_t>(most_bytes)), pages_(kFirstSlots * sizeof(Slot)), mask_(kFirstSlots - 1) {}

std::span<const uint32_t> LongCache::find(std::string_view text, uint64_t hash) const {
  for (size_t i = 0; i < kSearchedSlots; ++i) {
    const Slot& slot = slots()[(hash + i) & mask_];
    if (slot.length == 0) break;
    if (slot.hash == hash && std::string_view(keys_).substr(slot.key, slot.length) == text) {
      return std::span(ids_).subspan(slot.ids, slot.count);
    }
  }
  return {};
}

void LongCache::insert(std::string_view text, uint64_t hash, std::span<const uint32_t> ids) {
  TOKAMAK_CHECK(!ids.empty() && text.size() <= kLongest, text.size(), " bytes, ", ids.size(), " ids");
  const size_t arenas = keys_.size() + text.size() + (ids_.size() + ids.size()) * sizeof(uint32_t);
  const bool half_full = 2 * (size_ + 1) > mask_ + 1;
  if (arenas > most_bytes_ / 2 || (half_full && 4 * pages_.bytes() > most_bytes_ / 2)) {
    pages_.clear();
    keys_.clear();
    ids_.clear();
    size_ = 0;
  } else if (half_full) {
    grow();
  }
  Slot* slot = free_slot(hash);
  if (slot == nullptr) return;
  *slot = {hash, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(ids_.size()),
           static_cast<uint32_t>(ids.size()), static_cast<uint32_t>(text.size())};
  ++size_;
  keys_.append(text);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

LongCache::Slot* LongCache::free_slot(uint64_t hash) {
  for (size_t i = 0; i < kSearchedSlots; ++i) {
    Slot& slot = slots()[(hash + i) & mask_];
    if (slot.length == 0) return &slot;
  }
  return nullptr;
}

void LongCache::grow() {
  const ZeroedPages old = std::exchange(pages_, ZeroedPages(4 * (mask_ + 1) * sizeof(Slot)));
  const std::span<const Slot> old_slots(static_cast<const Slot*>(old.data()), mask_ + 1);
  mask_ = 4 * (mask_ + 1) - 1;
  size_ = 0;
  for (const Slot& slot : old_slots) {
    if (slot.length == 0) continue;
    Slot* moved = free_slot(slot.hash);
    if (moved == nullptr) continue;
    *moved = slot;
    ++size_;
  }
}

int64_t LongCache::bytes() const {
  return static_cast<int64_t>(pages_.bytes() + keys_.capacity() + ids_.capacity() * sizeof(uint32_t));
}

}  // namespace tokamak
