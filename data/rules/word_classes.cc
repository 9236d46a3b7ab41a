#include "data/rules/word_classes.h"

#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "data/rules/terminal_marks.h"
#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

namespace {

// The lists of spaCy (lang/char_classes.py) and datatrove (utils/text.py), which the tests compare with.
constexpr std::string_view kMarks = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪";
constexpr std::string_view kQuotes = "'\"”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧";
constexpr std::string_view kFronts =
    "§%=—–$£€¥฿₽﷼₴₠₡₢₣₤₥₦₧₨₩₪₫₭₮₯₰₱₲₳₵₶₷₸₹₺₻₼₾₿";
constexpr std::string_view kSymbols =
    "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»";

uint8_t class_of(Category category) {
  switch (category) {
    case Category::kLl:
      return kLowerLetter;
    case Category::kLu:
      return kUpperLetter;
    case Category::kLt:
    case Category::kLm:
    case Category::kLo:
      return kLowerLetter | kUpperLetter;
    case Category::kSo:
      return kIcon;
    case Category::kZs:
    case Category::kZl:
    case Category::kZp:
      return kSpaceChar;
    default:
      return 0;
  }
}

CharMap make_classes() {
  std::vector<uint8_t> classes(kCodePoints);
  const std::span<const uint32_t> runs = category_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t end = i + 1 < runs.size() ? runs[i + 1] >> 5 : kCodePoints;
    for (uint32_t code = runs[i] >> 5; code < end; ++code)
      classes[code] = class_of(static_cast<Category>(runs[i] & 31));
  }
  const auto add = [&](std::string_view chars, unsigned flags) {
    for (size_t at = 0; at < chars.size();) {
      const Utf8Char c = decode_valid_utf8(chars.data() + at);
      classes[c.code] = static_cast<uint8_t>(classes[c.code] | flags);
      at += static_cast<size_t>(c.length);
    }
  };
  add(kMarks, kMark);
  add(kQuotes, kMark | kQuote);
  add(kFronts, kFront);
  add(kSymbols, kSymbolChar);
  for (const uint32_t code : kTerminalMarks) classes[code] = static_cast<uint8_t>(classes[code] | kSymbolChar);
  const auto add_range = [&](uint32_t first, uint32_t last, uint8_t flag) {
    for (uint32_t code = first; code <= last; ++code) classes[code] = static_cast<uint8_t>(classes[code] | flag);
  };
  add_range(0x00, 0x08, kSymbolChar);
  add_range(0x0B, 0x1F, kSymbolChar);
  add_range(0x7F, 0x9F, kSymbolChar);
  add_range(0x09, 0x0D, kSpaceChar);
  add_range(0x1C, 0x1F, kSpaceChar);
  add_range(0x85, 0x85, kSpaceChar);

  std::vector<uint32_t> map;
  for (uint32_t code = 0; code < kCodePoints; ++code)
    if (code == 0 || classes[code] != classes[code - 1]) map.push_back(code << 8 | classes[code]);
  return CharMap(map);
}

}  // namespace

const CharMap& word_classes() {
  static const CharMap classes = make_classes();
  return classes;
}

}  // namespace tokamak
