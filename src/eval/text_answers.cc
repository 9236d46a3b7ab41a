#include "eval/text_answers.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "eval/python_text.h"

namespace tokamak {

namespace {

constexpr std::string_view kHashes = "#### ", kDigits = "0123456789", kInvalid = "[invalid]";

// re.findall(r"#### (\-?[0-9\.\,]+)", text)[0]
std::string_view after_hashes(std::string_view text) {
  for (size_t at = text.find(kHashes); at != std::string_view::npos; at = text.find(kHashes, at + 1)) {
    const size_t begin = at + kHashes.size();
    const size_t digits = begin + (text.substr(begin, 1) == "-" ? 1 : 0);
    const size_t end = std::min(text.find_first_not_of("0123456789.,", digits), text.size());
    if (end > digits) return text.substr(begin, end - begin);
  }
  return kInvalid;
}

// re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)[-1]: a run of two or more of these characters, or a single digit.
std::string_view last_number(std::string_view text) {
  std::string_view last = kInvalid;
  for (size_t at = 0; at < text.size();) {
    const size_t digits = at + (text[at] == '-' ? 1 : 0);
    const size_t end = std::min(text.find_first_not_of("$0123456789.,", digits), text.size());
    const bool is_one_digit = end == digits + 1 && kDigits.find(text[digits]) != std::string_view::npos;
    if (end >= digits + 2 || is_one_digit) {
      last = text.substr(at, end - at);
      at = end;
    } else {
      ++at;
    }
  }
  return last;
}

// GSM8K's number as it is compared.
std::string plain_number(std::string_view text) {
  std::string out = replace_all(replace_all(text, ",", ""), "$", "");
  if (const size_t hashes = out.rfind(kHashes); hashes != std::string::npos) out.erase(0, hashes + kHashes.size());
  // Python's $ also matches before a line break at the end.
  const size_t end = out.ends_with('\n') ? out.size() - 1 : out.size();
  if (end > 0 && out[end - 1] == '.') out.erase(end - 1, 1);
  return python_lower(out);
}

std::string plain_words(std::string_view text) {
  std::string out = python_lower(text);
  std::erase_if(out, [](unsigned char c) { return c < 0x80 && std::ispunct(c) != 0; });
  return out;
}

}  // namespace

std::string cut_at_stops(std::string_view text, std::span<const std::string> stops) {
  for (const std::string& stop : stops) {
    if (!stop.empty()) text = text.substr(0, text.find(stop));
  }
  return std::string(text);
}

std::string extracted_answer(TaskMetric metric, std::string_view text) {
  if (metric == TaskMetric::kStrictMatch) return std::string(after_hashes(text));
  if (metric == TaskMetric::kFlexibleExtract) return std::string(last_number(text));
  return std::string(python_strip(text));
}

bool is_right(TaskMetric metric, std::string_view answer, std::string_view reference) {
  if (metric == TaskMetric::kExactMatch) return plain_words(answer) == plain_words(reference);
  return plain_number(answer) == plain_number(reference);
}

double pass_at(int64_t k, int64_t n, int64_t c) {
  TOKAMAK_CHECK(0 < k && k <= n && 0 <= c && c <= n, k, " of ", n, " samples, ", c, " right");
  if (n - c < k) return 1;
  double none = 1;
  for (int64_t i = n - c + 1; i <= n; ++i) none *= 1 - double(k) / double(i);
  return 1 - none;
}

}  // namespace tokamak
