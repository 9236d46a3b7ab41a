#include "tokenizer/train_bytes/bytes_pattern.h"

#include "base/error.h"

namespace tokamak {

namespace {

// The pattern of GPT-2 where numbers were split off before. A run of white space before a number then ends a text, so
// its last character does not stand alone.
constexpr std::string_view kGpt2Letters =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";

constexpr std::string_view kSingle = R"(\p{N})";
constexpr std::string_view kUpToThree = R"(\p{N}{1,3})";

// `text` with its alternative of numbers replaced by `number`; "" if it has none.
std::string with_number(const std::string& text, std::string_view number) {
  for (const std::string_view was : {kSingle, kUpToThree}) {
    const std::string found = str("|", was, "|");
    const size_t at = text.find(found);
    if (at != std::string::npos) return str(text.substr(0, at), "|", number, "|", text.substr(at + found.size()));
  }
  return "";
}

}  // namespace

BytesPattern bytes_pattern(const std::string& family, Digits digits) {
  const std::span<const std::string_view> patterns = patterns_named(family);
  if (patterns.empty()) {
    const std::vector<std::string_view> names = scanner_families();
    fail(Kind::kConfig, str("there is no pattern '", family, "'"),
         "choose one of " + join({names.begin(), names.end()}, ", "));
  }
  BytesPattern pattern{.scanned = {patterns.begin(), patterns.end()},
                       .splits = {},
                       .whole_pieces = family == "llama3" || family == "tekken"};
  if (family == "smollm") pattern.digits_first = Digits::kSingle;
  if (family == "gpt2" && digits == Digits::kSingle) return bytes_pattern("smollm", Digits::kOfPattern);
  if (family == "gpt2" && digits == Digits::kUpToThree) {
    pattern.digits_first = digits;
    pattern.scanned = {str(kUpToThree, "|", kGpt2Letters)};
  }
  if (family == "gpt2" || (family == "smollm" && digits != Digits::kUpToThree)) return pattern;
  if (digits != Digits::kOfPattern) {
    const std::string_view number = digits == Digits::kSingle ? kSingle : kUpToThree;
    const std::string changed = patterns.size() > 1 ? "" : with_number(pattern.scanned[0], number);
    if (changed.empty()) {
      fail(Kind::kConfig, str("the pattern '", family, "' has no numbers that could be cut otherwise"),
           "leave the option digits out");
    }
    pattern.scanned = {changed};
  }
  pattern.splits = pattern.scanned;
  return pattern;
}

std::unique_ptr<Scanner> make_scanner(const BytesPattern& pattern) {
  if (pattern.scanned.size() == 1) return make_scanner(pattern.scanned[0]);
  const std::vector<std::string_view> patterns(pattern.scanned.begin(), pattern.scanned.end());
  return make_scanner(std::span(patterns));
}

}  // namespace tokamak
