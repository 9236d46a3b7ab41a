#include "tokenizer/train_bytes/pretoken_counter.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr size_t kEndsAtOnce = 256;  // pretokens whose slots are prefetched together

static_assert(std::endian::native == std::endian::little, "a short key holds its text in memory order");

// As key_of(), without a copy: 16 bytes follow `at`.
PretokenKey key_at(const char* at, size_t length) {
  const uint64_t low = load_u64(at), high = load_u64(at + 8);
  const uint64_t low_mask = length >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * length)) - 1;
  const uint64_t high_mask = length <= 8 ? 0 : (uint64_t{1} << (8 * (length - 8))) - 1;
  return {low & low_mask, (high & high_mask) | uint64_t{length} << 56};
}

}  // namespace

PretokenCounter::PretokenCounter(const Scanner& scanner) : scanner_(scanner) { clear(); }

void PretokenCounter::clear() {
  std::exchange(long_, {}).clear();
  std::exchange(long_bytes_, {}).clear();
  short_ = ShortSlots(kFirstSlots);
  long_.resize(kFirstSlots / 4);
  short_count_ = long_count_ = 0;
}

void PretokenCounter::add(std::string_view text, int64_t times) {
  std::array<uint32_t, kEndsAtOnce> ends;
  struct Found {
    PretokenKey key;
    uint64_t hash;
  };
  std::array<Found, kEndsAtOnce> found;
  size_t at = 0;
  while (const size_t count = scanner_.scan(text, at, ends)) {
    size_t begin = at;
    for (size_t i = 0; i < count; ++i) {
      const size_t length = ends[i] - begin;
      const char* const bytes = text.data() + begin;
      if (length > PretokenKey::kLongest) {
        found[i] = {{begin, 0}, hash_long({bytes, length})};
        __builtin_prefetch(&long_[found[i].hash & (long_.size() - 1)], 1);
      } else {
        const PretokenKey key = begin + 16 <= text.size() ? key_at(bytes, length) : key_of({bytes, length});
        found[i] = {key, hash_of(key)};
        __builtin_prefetch(&short_[found[i].hash], 1);
      }
      begin = ends[i];
    }
    for (size_t i = 0; i < count; ++i) {
      const auto& [key, hash] = found[i];
      if (key.high != 0) {
        add_short(key, hash, times);
      } else {
        add_long(text.substr(key.low, ends[i] - key.low), hash, times);
      }
    }
    at = ends[count - 1];
    pretokens_ += static_cast<int64_t>(count);
  }
}

void PretokenCounter::add_pretoken(CountedText pretoken) {
  if (pretoken.text.size() > PretokenKey::kLongest) {
    add_long(pretoken.text, hash_long(pretoken.text), pretoken.count);
  } else {
    const PretokenKey key = key_of(pretoken.text);
    add_short(key, hash_of(key), pretoken.count);
  }
}

void PretokenCounter::add_short(PretokenKey key, uint64_t hash, int64_t times) {
  for (uint64_t at = hash;; ++at) {
    ShortSlot& slot = short_[at];
    if (slot.key == key) {
      slot.count += times;
      return;
    }
    if (slot.key.high != 0) continue;
    slot.key = key;
    slot.count = times;
    if (++short_count_ * 8 > short_.count() * 5) grow_short();
    return;
  }
}

void PretokenCounter::add_long(std::string_view text, uint64_t hash, int64_t times) {
  for (size_t at = hash & (long_.size() - 1);; at = (at + 1) & (long_.size() - 1)) {
    LongSlot& slot = long_[at];
    if (slot.length == 0) {
      slot = {hash, long_bytes_.size(), static_cast<uint32_t>(text.size()), times};
      long_bytes_ += text;
      if (++long_count_ * 8 > long_.size() * 5) grow_long();
      return;
    }
    if (slot.hash != hash || std::string_view(long_bytes_).substr(slot.begin, slot.length) != text) continue;
    slot.count += times;
    return;
  }
}

void PretokenCounter::grow_short() {
  const ShortSlots old = std::exchange(short_, ShortSlots(2 * short_.count()));
  for (const ShortSlot& slot : old.all()) {
    if (slot.key.high == 0) continue;
    uint64_t at = hash_of(slot.key);
    while (short_[at].key.high != 0) ++at;
    short_[at] = slot;
  }
}

void PretokenCounter::grow_long() {
  const std::vector<LongSlot> old = std::exchange(long_, std::vector<LongSlot>(2 * long_.size()));
  for (const LongSlot& slot : old) {
    if (slot.length == 0) continue;
    size_t at = slot.hash & (long_.size() - 1);
    while (long_[at].length != 0) at = (at + 1) & (long_.size() - 1);
    long_[at] = slot;
  }
}

int64_t PretokenCounter::bytes() const {
  return static_cast<int64_t>(short_.count() * sizeof(ShortSlot) + long_.size() * sizeof(LongSlot) +
                              long_bytes_.capacity());
}

std::vector<CountedText> PretokenCounter::words() const {
  std::vector<CountedText> words;
  words.reserve(short_count_ + long_count_);
  for (const ShortSlot& slot : short_.all()) {
    if (slot.key.high == 0) continue;
    words.push_back({{reinterpret_cast<const char*>(&slot.key), slot.key.high >> 56}, slot.count});
  }
  for (const LongSlot& slot : long_) {
    if (slot.length != 0) words.push_back({std::string_view(long_bytes_).substr(slot.begin, slot.length), slot.count});
  }
  return words;
}

void make_valid_utf8(std::string& text) {
  if (is_valid_utf8(text)) return;
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(std::string_view(text).substr(at));
    if (c.code == kInvalidUtf8) {
      valid += kReplacementChar;
    } else {
      valid.append(text, at, static_cast<size_t>(c.length));
    }
    at += static_cast<size_t>(c.length);
  }
  text = std::move(valid);
}

}  // namespace tokamak
