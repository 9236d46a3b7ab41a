#include "tokenizer/scan/char_classes.h"

#include <algorithm>
#include <vector>

#include "tokenizer/scan/char_set.h"
#include "tokenizer/scan/pattern_reader.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak {

namespace {

class OneClass : PatternReader {
 public:
  explicit OneClass(std::string_view text) : PatternReader(text) {}
  CharSet set() {
    take("[");
    return bracket(false, 0);
  }
};

CharMap flags_of(const char* numbers) {
  const struct {
    uint8_t flag;
    CharSet set;
  } flags[] = {
      {kLetter, OneClass(R"([\p{L}])").set()},
      {kNumber, OneClass(numbers).set()},
      {kSpaceFlag, OneClass(R"([\s])").set()},
      {kNewline, OneClass(R"([\r\n])").set()},
      {kUpperClass, OneClass(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])").set()},
      {kLowerClass, OneClass(R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])").set()},
      {kPunctuation, OneClass(R"([\p{P}\p{S}])").set()},
      {kCjk, OneClass("[\\u4e00-\\u9fa5\\u3040-\\u30ff]").set()},
  };
  std::vector<uint32_t> borders = {0};
  for (const auto& [flag, set] : flags) borders.insert(borders.end(), set.borders().begin(), set.borders().end());
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  for (uint32_t& border : borders) {
    uint32_t value = 0;
    for (const auto& [flag, set] : flags)
      if (set.contains(border)) value |= flag;
    border = border << 8 | value;
  }
  return CharMap(borders);
}

}  // namespace

const CharMap& char_classes() {
  static const CharMap map = flags_of(R"([\p{N}])");
  return map;
}

const CharMap& char_classes_of_digits() {
  static const CharMap map = flags_of(kDigitPattern.data());
  return map;
}

}  // namespace tokamak
