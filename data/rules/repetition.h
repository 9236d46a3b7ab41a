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

  // The words of a text are given by their hashes and their lengths.
  NgramRepetition ngrams(std::span<const uint64_t> hashes, std::span<const int32_t> chars);

 private:
  // Numbers keys in the order of their first occurrence.
  class Groups {
   public:
    void clear(size_t expected);  // keys; more are slower
    int32_t group_of(uint64_t key);
    int32_t count() const { return static_cast<int32_t>(keys_.size()); }

   private:
    struct Slot {
      uint32_t mark;  // bits of the key that reject nearly all others, so that a slot is half as large as with the key
      int32_t group = kNone;
    };
    static constexpr int32_t kNone = -1;  // the slot is empty
    static uint64_t scattered(uint64_t key) { return key * 0x9E3779B97F4A7C15ULL; }
    Slot& slot_of(uint64_t key);  // of the key, or an empty one
    void grow();

    std::vector<Slot> slots_;     // open addressing; their number is a power of two
    std::vector<uint64_t> keys_;  // of each group
  };

  struct Gram {
    int32_t at;     // its first word
    int32_t group;  // of equal n-grams, in the order of their first occurrence
  };
  void group_by_keys();  // sets the groups of grams_, and removes those that occur once
  void lengthen();       // grams_ and keys_ of n words -> of n + 1
  int64_t top_chars(size_t n) const;
  int64_t duplicate_chars(size_t n);
  int64_t chars_of(size_t at, size_t n) const { return ends_[at + n] - ends_[at]; }  // without spaces

  Groups groups_;
  Duplicates parts_;
  std::vector<int64_t> ends_;     // characters before word i
  std::vector<Gram> grams_;       // those that may repeat, in the order of the text
  std::vector<uint64_t> keys_;    // of each gram; those of equal n-grams are equal
  std::vector<int32_t> counts_;   // of each group
  std::vector<uint8_t> is_seen_;  // of each group
};

}  // namespace tokamak
