#include "data/rules/repetition.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "data/rules/text_lines.h"

namespace tokamak {

inline RepetitionMeter::Groups::Slot& RepetitionMeter::Groups::slot_of(uint64_t key) {
  const size_t mask = slots_.size() - 1;
  const auto mark = static_cast<uint32_t>(scattered(key));
  for (size_t at = scattered(key) >> 32 & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.group == kNone || (slot.mark == mark && keys_[static_cast<size_t>(slot.group)] == key)) return slot;
  }
}

inline int32_t RepetitionMeter::Groups::group_of(uint64_t key) {
  Slot& slot = slot_of(key);
  if (slot.group != kNone) return slot.group;
  const int32_t group = count();
  slot = {static_cast<uint32_t>(scattered(key)), group};
  keys_.push_back(key);
  if (2 * keys_.size() > slots_.size()) grow();
  return group;
}

void RepetitionMeter::Groups::clear(size_t expected) {
  slots_.assign(std::bit_ceil(2 * expected + 2), Slot{});
  keys_.clear();
}

void RepetitionMeter::Groups::grow() {
  slots_.assign(2 * slots_.size(), Slot{});
  for (size_t i = 0; i < keys_.size(); ++i)
    slot_of(keys_[i]) = {static_cast<uint32_t>(scattered(keys_[i])), static_cast<int32_t>(i)};
}

void RepetitionMeter::begin_parts() {
  parts_ = {};
  groups_.clear(64);
}

void RepetitionMeter::add_part(std::string_view part) {
  ++parts_.all;
  const int32_t known = groups_.count();
  if (groups_.group_of(xxh3_64(std::as_bytes(std::span(part)))) == known) return;
  ++parts_.duplicates;
  parts_.chars += count_chars(part);
}

NgramRepetition RepetitionMeter::ngrams(std::span<const uint64_t> hashes, std::span<const int32_t> chars) {
  ends_.assign(1, 0);
  for (const int32_t length : chars) ends_.push_back(ends_.back() + length);
  keys_.assign(hashes.begin(), hashes.end());
  grams_.clear();
  for (size_t i = 0; i < hashes.size(); ++i) grams_.push_back({static_cast<int32_t>(i), 0});
  group_by_keys();

  NgramRepetition out;
  for (size_t n = 2; n <= 10 && n <= hashes.size(); ++n) {
    lengthen();
    group_by_keys();
    if (n <= 4)
      out.top_chars[n - 2] = top_chars(n);
    else
      out.duplicate_chars[n - 5] = duplicate_chars(n);
  }
  return out;
}

void RepetitionMeter::group_by_keys() {
  groups_.clear(grams_.size());
  counts_.assign(grams_.size(), 0);
  for (size_t i = 0; i < grams_.size(); ++i) {
    grams_[i].group = groups_.group_of(keys_[i]);
    ++counts_[static_cast<size_t>(grams_[i].group)];
  }
  counts_.resize(static_cast<size_t>(groups_.count()));
  size_t kept = 0;  // without a branch, which would be hard to predict
  for (const Gram gram : grams_) {
    grams_[kept] = gram;
    kept += counts_[static_cast<size_t>(gram.group)] > 1 ? 1 : 0;
  }
  grams_.resize(kept);
}

// An n-gram that repeats begins and ends with shorter ones that do.
void RepetitionMeter::lengthen() {
  size_t kept = 0;
  for (size_t i = 0; i + 1 < grams_.size(); ++i) {
    const Gram front = grams_[i], back = grams_[i + 1];
    grams_[kept].at = front.at;
    keys_[kept] = static_cast<uint64_t>(front.group) << 32 | static_cast<uint32_t>(back.group);
    kept += back.at == front.at + 1 ? 1 : 0;
  }
  grams_.resize(kept);
}

int64_t RepetitionMeter::top_chars(size_t n) const {
  const auto top = std::max_element(counts_.begin(), counts_.end());  // the first of equals
  if (grams_.empty()) return chars_of(0, n) + static_cast<int64_t>(n) - 1;
  const auto group = static_cast<int32_t>(top - counts_.begin());
  const auto first = std::find_if(grams_.begin(), grams_.end(), [&](const Gram& gram) { return gram.group == group; });
  return (chars_of(static_cast<size_t>(first->at), n) + static_cast<int64_t>(n) - 1) * *top;
}

int64_t RepetitionMeter::duplicate_chars(size_t n) {
  is_seen_.assign(counts_.size(), 0);
  int64_t chars = 0;
  size_t free = 0;  // the first word that belongs to no duplicate yet
  for (const Gram gram : grams_) {
    const auto at = static_cast<size_t>(gram.at);
    if (at < free || !std::exchange(is_seen_[static_cast<size_t>(gram.group)], uint8_t{1})) continue;
    chars += chars_of(at, n);
    free = at + n;
  }
  return chars;
}

}  // namespace tokamak
