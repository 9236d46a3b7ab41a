#include "tokenizer/bpe/long_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kFirstLongSlots = 1024;
constexpr size_t kSearchedSlots = 32;

size_t words_of(size_t length) { return (length + sizeof(uint32_t) - 1) / sizeof(uint32_t); }

}  // namespace

LongCache::LongCache(int64_t most_bytes)
    : most_bytes_(static_cast<size_t>(most_bytes)),
      pages_(kFirstLongSlots * sizeof(Slot)),
      mask_(kFirstLongSlots - 1),
      records_(1) {
  // Pages that are never written cost nothing; copying the records to larger memory does.
  records_.reserve(most_bytes_ / 4 * 3 / sizeof(uint32_t) + 1);
}

std::span<const uint32_t> LongCache::find(std::string_view text, uint64_t hash) const {
  for (size_t i = 0; i < kSearchedSlots; ++i) {
    const Slot slot = slots()[(hash + i) & mask_];
    if (slot.record == 0) break;
    if (slot.tag != hash >> 32) continue;
    const uint32_t* record = records_.data() + slot.record;
    const size_t count = record[1] & 0xFFFF;
    if (record[1] >> 16 == text.size() && std::memcmp(record + 2 + count, text.data(), text.size()) == 0) {
      return {record + 2, count};
    }
  }
  return {};
}

void LongCache::insert(std::string_view text, uint64_t hash, std::span<const uint32_t> ids) {
  TOKAMAK_CHECK(!ids.empty() && text.size() <= kLongest && ids.size() <= kLongest, text.size(), " bytes, ", ids.size(),
                " ids");
  const size_t words = 2 + ids.size() + words_of(text.size());
  const bool full = 4 * (size_ + 1) > 3 * (mask_ + 1);
  // A quarter of the memory is for slots, the rest for records.
  if ((records_.size() + words) * sizeof(uint32_t) > most_bytes_ / 4 * 3 ||
      (full && 4 * pages_.bytes() > most_bytes_ / 4)) {
    clear();
  } else if (full) {
    grow();
  }
  Slot* slot = free_slot(hash);
  if (slot == nullptr) return;
  const size_t begin = records_.size();
  *slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(begin)};
  ++size_;
  records_.resize(begin + words);
  records_[begin] = static_cast<uint32_t>(hash);
  records_[begin + 1] = static_cast<uint32_t>(text.size() << 16 | ids.size());
  std::copy(ids.begin(), ids.end(), records_.begin() + static_cast<int64_t>(begin) + 2);
  std::memcpy(records_.data() + begin + 2 + ids.size(), text.data(), text.size());
}

LongCache::Slot* LongCache::free_slot(uint64_t hash) {
  for (size_t i = 0; i < kSearchedSlots; ++i) {
    Slot& slot = slots()[(hash + i) & mask_];
    if (slot.record == 0) return &slot;
  }
  return nullptr;
}

void LongCache::grow() {
  const ZeroedPages old = std::exchange(pages_, ZeroedPages(4 * (mask_ + 1) * sizeof(Slot)));
  const std::span<const Slot> old_slots(static_cast<const Slot*>(old.data()), mask_ + 1);
  mask_ = 4 * (mask_ + 1) - 1;
  size_ = 0;
  for (const Slot& slot : old_slots) {
    if (slot.record == 0) continue;
    Slot* moved = free_slot(uint64_t{slot.tag} << 32 | records_[slot.record]);
    if (moved == nullptr) continue;
    *moved = slot;
    ++size_;
  }
}

void LongCache::clear() {
  pages_.clear();
  records_.resize(1);
  size_ = 0;
}

}  // namespace tokamak
