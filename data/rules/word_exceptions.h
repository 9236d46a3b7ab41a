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
  // nullptr: the word, which is not empty, is no exception.
  const Cuts* find(std::string_view word) const { return has_shape_[shape_of(word)] ? look_up(word) : nullptr; }
  size_t longest() const { return longest_; }  // bytes

 private:
  static constexpr size_t kShapes = 65536;
  struct Entry {
    std::string word;  // "" is an empty slot
    Cuts cuts{};
  };
  void add(std::string_view word, const Cuts& cuts);
  void add_contractions();
  const Cuts* look_up(std::string_view word) const;
  size_t slot_of(std::string_view word) const;  // of the word, or the empty one where it belongs
  // A number that few words share with an exception, and that costs less than a hash.
  static size_t shape_of(std::string_view word) {
    const auto byte = [&](size_t at) { return size_t{static_cast<unsigned char>(word[at])}; };
    const size_t size = word.size();
    return (((byte(0) * 31 + byte(size / 2)) * 31 + byte(size - 1)) * 31 + size) % kShapes;
  }

  std::vector<Entry> slots_;        // open addressing
  std::bitset<kShapes> has_shape_;  // of an exception
  size_t longest_ = 0;
};

}  // namespace tokamak
