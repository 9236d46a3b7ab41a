// Cuts text into pretokens, the units inside which a byte-level BPE merges. Each known pattern has a scanner written by
// hand; PCRE2 runs any other pattern. Every match, and every gap between two matches, is one piece: Hugging Face's
// `Split` calls that Isolated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tokamak {

// Immutable and shared by threads.
class Scanner {
 public:
  virtual ~Scanner() = default;
  // Writes the ends of the next pieces of `text` to `ends`, until it is full or the text is at its end. Returns their
  // number; 0 only at the end of the text. `text` is valid UTF-8 of less than 4 GiB. `at` is 0 or the end of a piece.
  // Reads nothing outside `text`.
  virtual size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const = 0;
};

// kBest is what the processor has. kNone cuts character by character: the reference.
enum class Simd { kBest, kAvx2, kNone };

// A scanner for `pattern`, a regular expression as tokenizer.json has it. Error(kData), naming the construct, for what
// we would not match as Hugging Face's engine (Oniguruma) does.
std::unique_ptr<Scanner> make_scanner(std::string_view pattern, Simd simd = Simd::kBest);

// The same, but always by PCRE2: the reference for the scanners written by hand.
std::unique_ptr<Scanner> make_pattern_scanner(std::string_view pattern);

// The same for a sequence of Isolated splits, each of which cuts the pieces of the one before. Null for a sequence that
// has no scanner written by hand: its caller applies the scanners of the patterns one after another.
std::unique_ptr<Scanner> make_scanner(std::span<const std::string_view> patterns, Simd simd = Simd::kBest);

// The name of the family that has these patterns; "" if none has. Patterns are compared as they match, not as they are
// written.
std::string_view scanner_family(std::span<const std::string_view> patterns);

// The pattern of a family by its name: gpt2, cl100k, llama3, qwen2, o200k, tekken, ...; "" for an unknown name, and for
// a family that is a sequence of patterns.
std::string_view pattern_named(std::string_view family);

// The same for any family. Empty for an unknown name.
std::span<const std::string_view> patterns_named(std::string_view family);

// The names of all families.
std::vector<std::string_view> scanner_families();

// The pre-tokenizer Digits as a pattern: each digit, or each run of digits. It follows Rust's Unicode 17, not \p{N}.
constexpr std::string_view kDigitPattern = "[\\p{N}\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}]";
constexpr std::string_view kDigitsPattern = "[\\p{N}\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}]+";

}  // namespace tokamak
