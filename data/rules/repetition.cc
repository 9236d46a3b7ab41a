#include "data/rules/repetition.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.h"
#include "data/rules/text_lines.h"
#include "data/rules/word_hash.h"

namespace tokamak {

namespace {

constexpr int32_t kOnce = -1;

}  // namespace

size_t RepetitionMeter::Groups::slot_of(uint64_t key) const {
  size_t at = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask_;
  while (slots_[at].epoch == epoch_ && slots_[at].key != key) at = (at + 1) & mask_;
  return at;
}

void RepetitionMeter::Groups::clear(size_t expected) {
  if (++epoch_ == 0) slots_.clear(), epoch_ = 1;
  const size_t slots = std::bit_ceil(2 * expected + 2);
  if (slots > slots_.size()) slots_.resize(slots);
  mask_ = slots - 1;
  count_ = 0;
}

int32_t RepetitionMeter::Groups::group_of(uint64_t key) {
  size_t at = slot_of(key);
  if (slots_[at].epoch == epoch_) return slots_[at].group;
  if (2 * static_cast<size_t>(count_) > mask_) {
    const std::vector<Slot> old(slots_.begin(), slots_.begin() + static_cast<int64_t>(mask_) + 1);
    const uint32_t old_epoch = epoch_;
    const int32_t count = count_;
    clear(old.size());
    for (const Slot& slot : old)
      if (slot.epoch == old_epoch) slots_[slot_of(slot.key)] = {slot.key, epoch_, slot.group};
    count_ = count;
    at = slot_of(key);
  }
  slots_[at] = {key, epoch_, count_++};
  return slots_[at].group;
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

NgramRepetition RepetitionMeter::ngrams(std::span<const std::string_view> words, std::span<const int32_t> chars) {
  const size_t count = words.size();
  words_.resize(count);
  level_.resize(count);
  ends_.assign(1, 0);
  groups_.clear(count);
  begin_level();
  for (size_t i = 0; i < count; ++i) {
    ends_.push_back(ends_.back() + chars[i]);
    add_to_level(i, word_hash(words[i]));
    words_[i] = level_[i];
  }
  end_level(count);

  NgramRepetition out;
  for (size_t n = 2; n <= 10 && n <= count; ++n) {
    groups_.clear(count / 4);
    begin_level();
    const size_t grams = count - n + 1;
    for (size_t i = 0; i < grams; ++i) {
      // An n-gram that occurs twice begins and ends with shorter ones that do.
      if (level_[i] < 0 || level_[i + 1] < 0)
        level_[i] = kOnce;
      else
        add_to_level(i, static_cast<uint64_t>(level_[i]) << 32 | static_cast<uint32_t>(words_[i + n - 1]));
    }
    end_level(grams);
    if (n <= 4)
      out.top_chars[n - 2] = top_chars(n);
    else
      out.duplicate_chars[n - 5] = duplicate_chars(n);
  }
  return out;
}

void RepetitionMeter::begin_level() {
  counts_.clear();
  firsts_.clear();
}

void RepetitionMeter::add_to_level(size_t at, uint64_t key) {
  const int32_t group = groups_.group_of(key);
  if (static_cast<size_t>(group) == counts_.size()) {
    counts_.push_back(0);
    firsts_.push_back(static_cast<int32_t>(at));
  }
  ++counts_[static_cast<size_t>(group)];
  level_[at] = group;
}

void RepetitionMeter::end_level(size_t grams) {
  for (size_t i = 0; i < grams; ++i)
    if (level_[i] >= 0 && counts_[static_cast<size_t>(level_[i])] == 1) level_[i] = kOnce;
  if (grams < level_.size()) level_[grams] = kOnce;
}

int64_t RepetitionMeter::top_chars(size_t n) const {
  const auto top = std::max_element(counts_.begin(), counts_.end());  // the first of equals
  const bool repeats = top != counts_.end() && *top > 1;
  const size_t at = repeats ? static_cast<size_t>(firsts_[static_cast<size_t>(top - counts_.begin())]) : 0;
  return (chars_of(at, n) + static_cast<int64_t>(n) - 1) * (repeats ? *top : 1);
}

int64_t RepetitionMeter::duplicate_chars(size_t n) {
  is_seen_.assign(counts_.size(), 0);
  int64_t chars = 0;
  for (size_t i = 0; i + n < ends_.size();) {
    const int32_t group = level_[i];
    if (group < 0 || !std::exchange(is_seen_[static_cast<size_t>(group)], uint8_t{1})) {
      ++i;
      continue;
    }
    chars += chars_of(i, n);
    i += n;
  }
  return chars;
}

}  // namespace tokamak
