#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

namespace {

#include "tokenizer/scan/unicode_runs.inc"

struct Script {
  std::string_view name;
  std::span<const uint32_t> borders;
};

constexpr Script kScripts[] = {
    {"han", kHanBorders},           {"hiragana", kHiraganaBorders},     {"katakana", kKatakanaBorders},
    {"hangul", kHangulBorders},     {"latin", kLatinBorders},           {"greek", kGreekBorders},
    {"cyrillic", kCyrillicBorders}, {"arabic", kArabicBorders},         {"hebrew", kHebrewBorders},
    {"thai", kThaiBorders},         {"devanagari", kDevanagariBorders}, {"word", kWordBorders},
};

}  // namespace

const std::string_view kCategoryNames[kCategories] = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
                                                      "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
                                                      "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn", "Cs"};

std::span<const uint32_t> category_runs() { return kCategoryRuns; }

std::span<const uint32_t> script_borders(std::string_view name) {
  for (const Script& script : kScripts)
    if (script.name == name) return script.borders;
  return {};
}

}  // namespace tokamak
