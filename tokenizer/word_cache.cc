#include "tokenizer/word_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace tokamak {

namespace {

constexpr int64_t kFirstWordSlots = 1024;

uint64_t hash_of(std::string_view word) { return xxh3_64(std::as_bytes(std::span(word.data(), word.size()))); }

}  // namespace

WordCache::WordCache(int64_t words)
    : most_words_(words), slots_(static_cast<size_t>(std::min(2 * words, kFirstWordSlots))) {
  TOKAMAK_CHECK(words > 0 && std::has_single_bit(static_cast<uint64_t>(words)), words, " words");
}

std::optional<std::span<const int32_t>> WordCache::find(std::string_view word) const {
  const uint64_t hash = hash_of(word);
  for (size_t i = hash & (slots_.size() - 1); slots_[i].key_length != 0; i = next(i)) {
    const Slot& slot = slots_[i];
    if (slot.hash == hash && std::string_view(keys_).substr(slot.key, slot.key_length) == word) {
      return std::span(ids_).subspan(slot.ids, slot.id_count);
    }
  }
  return std::nullopt;
}

void WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  TOKAMAK_CHECK(!word.empty() && word.size() <= kLongestWord, word.size(), " bytes");
  if (2 * static_cast<size_t>(size_ + 1) > slots_.size()) make_room();
  const uint64_t hash = hash_of(word);
  free_slot(hash) = {hash, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(ids_.size()),
                     static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
  keys_.append(word);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++size_;
}

WordCache::Slot& WordCache::free_slot(uint64_t hash) {
  size_t i = hash & (slots_.size() - 1);
  while (slots_[i].key_length != 0) i = next(i);
  return slots_[i];
}

int64_t WordCache::bytes() const {
  return static_cast<int64_t>(slots_.capacity() * sizeof(Slot) + keys_.capacity() + ids_.capacity() * sizeof(int32_t));
}

void WordCache::make_room() {
  if (std::ssize(slots_) < 2 * most_words_) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.key_length != 0) free_slot(slot.hash) = slot;
    }
    return;
  }
  slots_.assign(slots_.size(), {});
  keys_.clear();
  ids_.clear();
  size_ = 0;
}

}  // namespace tokamak
