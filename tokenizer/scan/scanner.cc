#include "tokenizer/scan/scanner.h"

#include <algorithm>

#include "tokenizer/scan/family_scanner.h"
#include "tokenizer/scan/pattern_parser.h"

namespace tokamak {

namespace {

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define PREFIX R"([^\r\n\p{L}\p{N}]?)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define WHITE R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define LINES R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)" WHITE
#define SLASHES R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)" WHITE
#define CL100K_LINES(END) R"(| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++)" END R"(|\s*[\r\n]|\s+(?!\S)|\s)"

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// NOLINTBEGIN(bugprone-suspicious-missing-comma): a pattern is several literals
constexpr std::string_view kPatterns[] = {
    kGpt2,
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" LINES,
    // tiktoken reads {1,3}+ as possessive and $ as the end of the text. This is how Oniguruma writes it.
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3})" CL100K_LINES(R"(\z)"),
    // As in the files: any number of digits.
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+)" CL100K_LINES("$"),
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" LINES,
    CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)" WHITE,
    PREFIX UPPER "*" LOWER "+" CONTRACTION "?|" PREFIX UPPER "+" LOWER "*" CONTRACTION R"(?|\p{N}{1,3})" SLASHES,
    PREFIX UPPER "*" LOWER "+|" PREFIX UPPER "+" LOWER R"(*|\p{N})" SLASHES,
};
// NOLINTEND(bugprone-suspicious-missing-comma)
constexpr std::string_view kDigitsGpt2[] = {kDigitPattern, kGpt2};
constexpr std::string_view kDeepSeek3[] = {
    R"(\p{N}{1,3})", R"([一-龥\u3040-ゟ゠-ヿ]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)" WHITE};

struct KnownFamily {
  std::string_view name;
  std::span<const std::string_view> patterns;
  std::unique_ptr<Scanner> (*make)(Simd);
};

constexpr std::span<const std::string_view> one(int i) {
  return std::span(kPatterns).subspan(static_cast<size_t>(i), 1);
}

constexpr KnownFamily kFamilies[] = {
    {"gpt2", one(0), make_family_scanner<kGpt2Family>},
    {"llama3", one(1), make_family_scanner<kLlama3Family>},
    {"cl100k", one(2), make_family_scanner<kCl100kFamily>},
    {"phi4", one(3), make_family_scanner<kCl100kAnyDigitsFamily>},
    {"qwen2", one(4), make_family_scanner<kQwen2Family>},
    {"qwen35", one(5), make_family_scanner<kQwen35Family>},
    {"o200k", one(6), make_family_scanner<kO200kFamily>},
    {"tekken", one(7), make_family_scanner<kTekkenFamily>},
    {"smollm", kDigitsGpt2, make_family_scanner<kDigitsGpt2Family>},
    {"deepseek3", kDeepSeek3, make_family_scanner<kDeepSeekFamily>},
};

#undef CONTRACTION
#undef PREFIX
#undef UPPER
#undef LOWER
#undef WHITE
#undef LINES
#undef SLASHES
#undef CL100K_LINES

// Null if no family has these patterns.
const KnownFamily* find_family(std::span<const std::string_view> patterns) {
  const auto parsed = [](std::span<const std::string_view> all) {
    std::vector<ClassPattern> result;
    for (const std::string_view pattern : all) result.push_back(parse_pattern(pattern));
    return result;
  };
  const std::vector<ClassPattern> wanted = parsed(patterns);
  for (const KnownFamily& known : kFamilies)
    if (known.patterns.size() == patterns.size() && parsed(known.patterns) == wanted) return &known;
  return nullptr;
}

}  // namespace

std::span<const std::string_view> patterns_named(std::string_view family) {
  for (const KnownFamily& known : kFamilies)
    if (known.name == family) return known.patterns;
  return {};
}

std::string_view pattern_named(std::string_view family) {
  const std::span<const std::string_view> patterns = patterns_named(family);
  return patterns.size() == 1 ? patterns[0] : "";
}

std::vector<std::string_view> scanner_families() {
  std::vector<std::string_view> names;
  for (const KnownFamily& known : kFamilies) names.push_back(known.name);
  return names;
}

std::string_view scanner_family(std::span<const std::string_view> patterns) {
  const KnownFamily* family = find_family(patterns);
  return family ? family->name : "";
}

std::unique_ptr<Scanner> make_scanner(std::span<const std::string_view> patterns, Simd simd) {
  if (const KnownFamily* family = find_family(patterns)) return family->make(simd);
  return patterns.size() == 1 ? make_pattern_scanner(patterns[0]) : nullptr;
}

std::unique_ptr<Scanner> make_scanner(std::string_view pattern, Simd simd) {
  return make_scanner(std::span(&pattern, 1), simd);
}

}  // namespace tokamak
