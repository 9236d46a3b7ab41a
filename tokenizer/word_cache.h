// Caches the ids of words, so that each is merged once. The size is bounded. A full cache is cleared, which happens
// once in many megabytes of natural text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class WordCache {
 public:
  static constexpr size_t kLongestWord = 96;  // bytes; longer words rarely repeat

  // `words`: maximum number of words; a power of two.
  explicit WordCache(int64_t words = 1 << 18);

  // The cached ids of `word`, or nullopt. The span is valid until the next insert.
  std::optional<std::span<const int32_t>> find(std::string_view word) const;

  // `word` must not be in the cache, and not be longer than kLongestWord.
  void insert(std::string_view word, std::span<const int32_t> ids);

  int64_t size() const { return size_; }  // words
  int64_t bytes() const;                  // memory of its tables

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t key = 0;         // offset in keys_
    uint32_t ids = 0;         // offset in ids_
    uint16_t key_length = 0;  // 0: free
    uint16_t id_count = 0;
  };

  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  Slot& free_slot(uint64_t hash);
  void make_room();

  int64_t most_words_;
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::string keys_;
  std::vector<int32_t> ids_;
  int64_t size_ = 0;
};

}  // namespace tokamak
