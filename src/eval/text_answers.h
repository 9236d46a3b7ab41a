// The rules by which lm-evaluation-harness 0.4.13 judges generated texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "eval/task_form.h"

namespace tokamak {

// The text before the first occurrence of each stop, one stop after the other.
std::string cut_at_stops(std::string_view text, std::span<const std::string> stops);

// The answer in a text, for a metric that judges texts. strict_match: the first number after "#### ". flexible_extract:
// the last number, or run of digits, commas, points and dollar signs. Without one: "[invalid]". exact_match: the text
// without white space at its ends.
std::string extracted_answer(TaskMetric metric, std::string_view text);

// Whether an extracted answer is the reference. exact_match: ignoring case and ASCII punctuation. The two others, as of
// GSM8K: ignoring case, commas, dollar signs, everything up to the last "#### ", and a final point.
bool is_right(TaskMetric metric, std::string_view answer, std::string_view reference);

// The probability that of k of n samples, c of which are right, at least one is: 1 - C(n - c, k) / C(n, k), unbiased
// (Chen et al. 2021, 2107.03374, eq. 1). k <= n.
double pass_at(int64_t k, int64_t n, int64_t c);

}  // namespace tokamak
