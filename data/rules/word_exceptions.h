// Words that the general rules of words.h would split otherwise: "don't" is "do" and "n't", "Dr." and ":-)" are one.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// Rules for any language, or these and those of English.
enum class WordRules { kAny, kEnglish };

class WordExceptions {
 public:
  // Offsets in the word, in bytes, at which it is cut; the first 0 ends them.
  using Cuts = std::array<uint8_t, 4>;

  explicit WordExceptions(WordRules rules);
  const Cuts* find(std::string_view word) const;  // nullptr: the word is no exception
  size_t longest() const { return longest_; }     // bytes

 private:
  struct Entry {
    std::string word;  // "" is an empty slot
    Cuts cuts{};
  };
  void add(std::string_view word, const Cuts& cuts);
  void add_contractions();
  size_t slot_of(std::string_view word) const;  // of the word, or the empty one where it belongs

  std::vector<Entry> slots_;    // open addressing
  std::bitset<65536> present_;  // by hash: a word whose bit is not set is no exception
  size_t longest_ = 0;
};

}  // namespace tokamak
