// Scanners, patterns and normal forms as functions of bytes: they equal their references and touch no stray memory.
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "fuzz/targets.h"
#include "tokenizer/scan/normalization.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak::fuzz {

namespace {

// The valid characters of `bytes`.
std::string valid_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Char c = decode_utf8(bytes);
    if (c.code != kInvalidUtf8) text += bytes.substr(0, static_cast<size_t>(c.length));
    bytes.remove_prefix(static_cast<size_t>(c.length));
  }
  return text;
}

std::vector<uint32_t> ends_of(const Scanner& scanner, std::string_view text, size_t buffer) {
  std::vector<uint32_t> ends(buffer), all;
  size_t at = 0;
  while (const size_t count = scanner.scan(text, at, ends)) {
    all.insert(all.end(), ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(count));
    require(all.back() > at && all.back() <= text.size());
    at = all.back();
  }
  require(at == text.size());
  return all;
}

struct FamilyUnderTest {
  explicit FamilyUnderTest(std::string_view name) {
    for (const std::string_view pattern : patterns_named(name)) patterns.push_back(make_pattern_scanner(pattern));
    for (const Simd simd : {Simd::kNone, Simd::kAvx2, Simd::kBest})
      scanners.push_back(make_scanner(patterns_named(name), simd));
  }
  std::vector<std::unique_ptr<Scanner>> patterns, scanners;
};

// The scanner of a family cuts any text as its patterns do. The text is copied, so that a read beyond it is found.
template <int kNumber>
Verdict scanner(std::string_view bytes) {
  static const FamilyUnderTest family(scanner_families()[kNumber]);
  const std::string all = valid_text(bytes);
  const std::vector<char> exact(all.begin(), all.end());
  const std::string_view text(exact.data(), exact.size());
  std::vector<uint32_t> wanted = {static_cast<uint32_t>(text.size())};
  for (const auto& pattern : family.patterns) {
    std::vector<uint32_t> finer;
    uint32_t at = 0;
    for (const uint32_t end : wanted) {
      for (const uint32_t inner : ends_of(*pattern, text.substr(at, end - at), 64)) finer.push_back(at + inner);
      at = end;
    }
    wanted = std::move(finer);
  }
  for (const auto& one : family.scanners) {
    require(ends_of(*one, text, 256) == wanted);
    require(ends_of(*one, text, 1 + bytes.size() % 5) == wanted);
  }
  return Verdict::kAccepted;
}

std::string scanner_sample() {
  return "don't 'S'll\n\n  x 1234567 \t!?\n//\n camelCaseHTTPServer A\u00AAB e\u0301 \u0301AB \u4E2D\u6587\u3002 "
         "\u30FB\u304B\u309B \u0416\u0436 \u2019s \u00A0\u3000\u2028 '\u017F \U0001F600\uFE0F \u0663\u2167\u00BD\r\n";
}

// Whatever the pattern, it cuts a text or is refused. It is refused, too, if it takes too many steps.
Verdict pattern(std::string_view bytes) {
  try {
    const auto scanner = make_pattern_scanner(bytes);
    ends_of(*scanner, scanner_sample(), 64);
    return Verdict::kAccepted;
  } catch (const Error& error) {
    require(error.kind() == Kind::kData && printable(error.what(), 1000) == error.what());
    return Verdict::kRefused;
  }
}

std::string pattern_sample() {
  return R"((?i:'S|t\x41)|[^\r\n\p{L}\p{^N}&&[a-z\x{4E00}]]?+[\p{Lu}\u4E00-\u9FFF\d]{1,3}+|(?<=a)b{2}?|\s+(?!\S)|\W$|\Z)";
}

// A normal form does not change again, and its own quick check accepts what it has made of its result.
Verdict normal_form(std::string_view bytes) {
  const std::string text = valid_text(bytes);
  std::string once, twice, compatible;
  append_nfc(text, once);
  append_nfc(once, twice);
  append_nfkc(text, compatible);
  require(once == twice && is_valid_utf8(once) && is_valid_utf8(compatible));
  const size_t same = nfc_prefix(text);
  require(same <= text.size() && once.compare(0, same, text, 0, same) == 0);
  return Verdict::kAccepted;
}

constexpr double kEach = 1.01;  // any input is a text

constexpr Target kScanTargets[] = {
    {"scan_gpt2", scanner<0>, scanner_sample, 500, kEach, true},
    {"scan_llama3", scanner<1>, scanner_sample, 500, kEach, true},
    {"scan_cl100k", scanner<2>, scanner_sample, 500, kEach, true},
    {"scan_phi4", scanner<3>, scanner_sample, 500, kEach, true},
    {"scan_qwen2", scanner<4>, scanner_sample, 500, kEach, true},
    {"scan_qwen35", scanner<5>, scanner_sample, 500, kEach, true},
    {"scan_o200k", scanner<6>, scanner_sample, 500, kEach, true},
    {"scan_tekken", scanner<7>, scanner_sample, 500, kEach, true},
    {"scan_smollm", scanner<8>, scanner_sample, 500, kEach, true},
    {"scan_deepseek3", scanner<9>, scanner_sample, 500, kEach, true},
    {"pattern", pattern, pattern_sample, 1000, kEach, true},
    {"normal_form", normal_form, scanner_sample, 1000, kEach, true},
};

}  // namespace

std::span<const Target> scan_targets() { return kScanTargets; }

}  // namespace tokamak::fuzz
