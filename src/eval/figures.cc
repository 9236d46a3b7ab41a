#include "eval/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel_for.h"
#include "eval/python_random.h"

namespace tokamak {

namespace {

constexpr int64_t kChunk = 1000;  // draws

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

double sample_deviation(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1));
}

double perplexity(double sum, size_t count) { return std::exp(-sum / double(count)); }

}  // namespace

Figure mean_figure(std::span<const double> values) {
  Figure figure{mean_of(values), {}, std::ssize(values)};
  if (values.size() > 1) figure.error = sample_deviation(values) / std::sqrt(double(values.size()));
  return figure;
}

Figure perplexity_figure(std::span<const double> log_likelihoods, int64_t draws) {
  const size_t n = log_likelihoods.size();
  Figure figure{
      perplexity(std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0), n), {}, static_cast<int64_t>(n)};
  if (n < 2 || draws < 2) return figure;
  const int64_t chunk = std::min(draws, kChunk), chunks = draws / chunk;
  std::vector<double> drawn(static_cast<size_t>(chunks * chunk));
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      PythonRandom random(static_cast<uint64_t>(i));
      for (int64_t draw = 0; draw < chunk; ++draw) {
        double sum = 0;
        for (size_t k = 0; k < n; ++k) sum += log_likelihoods[static_cast<size_t>(random.uniform() * double(n))];
        drawn[static_cast<size_t>(i * chunk + draw)] = perplexity(sum, n);
      }
    }
  });
  figure.error = sample_deviation(drawn);
  return figure;
}

Figure pooled_figure(std::span<const Figure> parts) {
  Figure pooled;
  double sum = 0, variance = 0;
  bool all_have_errors = true;
  for (const Figure& part : parts) {
    const auto n = double(part.items);
    pooled.items += part.items;
    sum += n * part.value;
    variance += (n - 1) * n * std::pow(part.error.value_or(0), 2);
    all_have_errors = all_have_errors && part.error.has_value();
  }
  const auto n = double(pooled.items);
  pooled.value = sum / n;
  if (all_have_errors) pooled.error = std::sqrt(variance / (n - double(parts.size())) / n);
  return pooled;
}

void add_figure(const std::string& name, const Figure& figure, std::vector<NamedValue>& out) {
  out.push_back({name, figure.value});
  if (figure.error) out.push_back({name + "_stderr", *figure.error});
}

}  // namespace tokamak
