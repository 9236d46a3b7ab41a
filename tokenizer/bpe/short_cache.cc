#include "tokenizer/bpe/short_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr size_t kFirstLines = size_t{1} << 15;
constexpr size_t kSearchedLines = 8;
constexpr size_t kMostSpilled = size_t{1} << 22;  // ids

bool is_free(const ShortCache::Entry& entry) { return entry.key.high == 0; }

}  // namespace

ShortCache::ShortCache(int64_t most_entries)
    : most_lines_(static_cast<size_t>(most_entries) / 2),
      pages_(std::min(most_lines_, kFirstLines) * sizeof(Line)),
      lines_(static_cast<Line*>(pages_.data())),
      mask_(std::min(most_lines_, kFirstLines) - 1) {
  TOKAMAK_CHECK(most_entries >= 2 && std::has_single_bit(static_cast<uint64_t>(most_entries)), most_entries);
}

ShortCache::Value ShortCache::find(PretokenKey key, uint64_t hash) const {
  for (size_t i = 0; i < kSearchedLines; ++i) {
    const Value value = find_first(key, hash + i);
    if (value.count() != 0 || is_free(lines_[(hash + i) & mask_].entries[1])) return value;
  }
  return {};
}

size_t ShortCache::copy_spilled(Value value, uint32_t* ids) const {
  const auto count = static_cast<size_t>(value.high);
  std::copy_n(spilled_.begin() + static_cast<int64_t>(value.low >> 32), count, ids);
  return count;
}

void ShortCache::insert(PretokenKey key, uint64_t hash, std::span<const uint32_t> ids) {
  if (4 * (size_ + 1) > 3 * 2 * (mask_ + 1) && mask_ + 1 < most_lines_) grow();
  Value value;
  if (ids.size() <= kInline) {
    uint32_t packed[kInline] = {};
    std::copy(ids.begin(), ids.end(), packed);
    packed[0] |= static_cast<uint32_t>(ids.size()) << kCountShift;
    std::memcpy(&value, packed, sizeof value);
  } else {
    if (spilled_.size() + ids.size() > kMostSpilled) {
      pages_.clear();
      spilled_.clear();
      size_ = 0;
    }
    value = {uint64_t{spilled_.size()} << 32 | uint64_t{kSpilled} << kCountShift, ids.size()};
    spilled_.insert(spilled_.end(), ids.begin(), ids.end());
  }
  entry_for(hash) = {key, value};
}

// A free entry on the way of the search, or one to replace. An entry never becomes free again, so a search may end at
// the first line with a free one. A table at its bound stays a quarter free, so that searches stay short: a new key
// replaces one of its first line.
ShortCache::Entry& ShortCache::entry_for(uint64_t hash) {
  if (4 * (size_ + 1) <= 3 * 2 * (mask_ + 1)) {
    for (size_t i = 0; i < kSearchedLines; ++i) {
      for (Entry& entry : lines_[(hash + i) & mask_].entries) {
        if (!is_free(entry)) continue;
        ++size_;
        return entry;
      }
    }
  }
  return lines_[hash & mask_].entries[++victim_ & 1];
}

void ShortCache::grow() {
  const size_t lines = std::min(4 * (mask_ + 1), most_lines_);
  const ZeroedPages old = std::exchange(pages_, ZeroedPages(lines * sizeof(Line)));
  const std::span<const Line> old_lines(static_cast<const Line*>(old.data()), mask_ + 1);
  lines_ = static_cast<Line*>(pages_.data());
  mask_ = lines - 1;
  size_ = 0;
  for (const Line& line : old_lines) {
    for (const Entry& entry : line.entries) {
      if (!is_free(entry)) entry_for(hash_of(entry.key)) = entry;
    }
  }
}

}  // namespace tokamak
