#include "tokenizer/scan/scanner.h"

namespace tokamak {

namespace {

struct Family {
  std::string_view name, pattern;
};

#define WORD_TAIL R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

constexpr std::string_view kLlama3 = CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" WORD_TAIL;

constexpr Family kFamilies[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"llama3", kLlama3},
    {"cl100k-0.7", kLlama3},
    // tiktoken reads {1,3}+ as possessive and $ as the end of the text. This is how Oniguruma writes it.
    {"cl100k", R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|)"
               R"(\s*[\r\n]|\s+(?!\S)|\s)"},
    {"qwen2", CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen35", CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)"
                           R"(\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k", R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER "+" CONTRACTION R"(?|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER
              "*" CONTRACTION R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"tekken", R"([^\r\n\p{L}\p{N}]?)" UPPER "*" LOWER R"(+|[^\r\n\p{L}\p{N}]?)" UPPER "+" LOWER
               R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

#undef WORD_TAIL
#undef UPPER
#undef LOWER
#undef CONTRACTION

}  // namespace

std::string_view pattern_named(std::string_view family) {
  for (const Family& known : kFamilies)
    if (known.name == family) return known.pattern;
  return "";
}

std::unique_ptr<Scanner> make_scanner(std::string_view pattern) { return make_pattern_scanner(pattern); }

std::unique_ptr<Scanner> make_scanner(std::span<const std::string_view> patterns) {
  return patterns.size() == 1 ? make_scanner(patterns[0]) : nullptr;
}

}  // namespace tokamak
