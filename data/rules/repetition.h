// How much of a text repeats: words, their n-grams, lines and paragraphs. After Gopher (arXiv 2112.11446, table A1), as
// datatrove computes it: the first occurrence of something is no duplicate.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tokamak {

struct Duplicates {
  int64_t all = 0;         // parts
  int64_t duplicates = 0;  // parts that occurred before
  int64_t chars = 0;       // of those

  double fraction() const { return all > 0 ? double(duplicates) / double(all) : 0; }
};

// The shares of n-grams of words. Lengths are in characters.
struct NgramRepetition {
  std::array<int64_t, 3> top_chars{};        // of 2-, 3- and 4-grams: the most frequent one's length times its count
  std::array<int64_t, 6> duplicate_chars{};  // of 5- to 10-grams; a duplicate's words belong to no other duplicate
};

// Keeps its tables, so that measuring a document allocates nothing once they have grown.
class RepetitionMeter {
 public:
  // Counts the parts that are equal to an earlier one.
  void begin_parts();
  void add_part(std::string_view part);
  const Duplicates& parts() const { return parts_; }

  NgramRepetition ngrams(std::span<const std::string_view> words, std::span<const int32_t> chars);  // of each word

 private:
  // Numbers keys in the order of their first occurrence. Clearing it is free.
  class Groups {
   public:
    void clear(size_t expected);  // keys
    int32_t group_of(uint64_t key);
    int32_t count() const { return count_; }

   private:
    struct Slot {
      uint64_t key = 0;
      uint32_t epoch = 0;  // an older one: the slot is empty
      int32_t group = 0;
    };
    size_t slot_of(uint64_t key) const;  // of the key, or an empty one

    std::vector<Slot> slots_;  // open addressing in the first mask_ + 1, a power of two
    size_t mask_ = 0;
    uint32_t epoch_ = 0;
    int32_t count_ = 0;
  };

  void begin_level();
  void add_to_level(size_t at, uint64_t key);
  void end_level(size_t grams);  // removes groups of one n-gram
  int64_t top_chars(size_t n) const;
  int64_t duplicate_chars(size_t n);
  int64_t chars_of(size_t at, size_t n) const { return ends_[at + n] - ends_[at]; }  // without spaces

  Groups groups_;
  Duplicates parts_;
  std::vector<int32_t> words_;    // each word's group
  std::vector<int64_t> ends_;     // characters before word i
  std::vector<int32_t> level_;    // the group of the n-gram at each word; -1: it occurs once
  std::vector<int32_t> counts_;   // of each group
  std::vector<int32_t> firsts_;   // the first n-gram of each group
  std::vector<uint8_t> is_seen_;  // of each group
};

}  // namespace tokamak
