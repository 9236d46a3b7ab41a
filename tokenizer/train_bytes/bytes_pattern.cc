#include "tokenizer/train_bytes/bytes_pattern.h"

#include "base/error.h"

namespace tokamak {

namespace {

// GPT-2's pattern where numbers were split off before. A run of white space before a number then ends a text, so its
// last character does not stand alone.
constexpr std::string_view kGpt2Letters = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";

constexpr std::string_view kSingle = R"(\p{N})";
constexpr std::string_view kUpToThree = R"(\p{N}{1,3})";

// `text` with its alternative `was` replaced; "" if it has none.
std::string replaced(const std::string& text, std::string_view was, std::string_view is) {
  const std::string found = str("|", was, "|");
  const size_t at = text.find(found);
  if (at == std::string::npos) return "";
  return str(text.substr(0, at), "|", is, "|", text.substr(at + found.size()));
}

}  // namespace

BytesPattern bytes_pattern(const std::string& family, Digits digits) {
  const std::string text(pattern_named(family));
  if (text.empty()) {
    fail(Kind::kConfig, str("there is no pattern '", family, "'"),
         "choose gpt2, cl100k, llama3, qwen2, qwen35, o200k or tekken");
  }
  const bool gpt2 = family == "gpt2";
  BytesPattern pattern{.scanned = text,
                       .split = gpt2 ? "" : text,
                       .whole_pieces = family == "llama3" || family == "tekken"};
  if (digits == Digits::kOfPattern) return pattern;
  const std::string_view number = digits == Digits::kSingle ? kSingle : kUpToThree;
  if (gpt2) {
    pattern.digits_first = digits;
    pattern.scanned = str(number, "|", kGpt2Letters);
    return pattern;
  }
  if (text.find(str("|", number, "|")) != std::string::npos) return pattern;
  pattern.split = replaced(text, digits == Digits::kSingle ? kUpToThree : kSingle, number);
  if (pattern.split.empty()) {
    fail(Kind::kConfig, str("the pattern '", family, "' has no numbers that could be cut otherwise"),
         "leave the option digits out");
  }
  pattern.scanned = pattern.split;
  return pattern;
}

}  // namespace tokamak
