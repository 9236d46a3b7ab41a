// Metrics of many items, with the standard errors of lm-evaluation-harness 0.4.13.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

struct Figure {
  double value = 0;
  std::optional<double> error;  // standard error; none of a single item
  int64_t items = 0;
};

// The mean. Error: the sample standard deviation / sqrt(n).
Figure mean_figure(std::span<const double> values);

// exp(-mean) of log-likelihoods. Error: the sample standard deviation of it over `draws` samples with replacement, in
// chunks of 1000; chunk i is drawn by PythonRandom(i).
Figure perplexity_figure(std::span<const double> log_likelihoods, int64_t draws);

// The mean of parts, weighted by their items. Error: sqrt(sum (n_i - 1) n_i error_i^2 / (n - k) / n) for n items in k
// parts; none if a part has none.
Figure pooled_figure(std::span<const Figure> parts);

// The figures of a task, and those of its parts and groups of parts.
struct EvalFigures {
  std::vector<NamedValue> values;
  std::vector<std::pair<std::string, std::vector<NamedValue>>> parts;
};

// "acc", "acc_stderr"
void add_figure(const std::string& name, const Figure& figure, std::vector<NamedValue>& out);

}  // namespace tokamak
