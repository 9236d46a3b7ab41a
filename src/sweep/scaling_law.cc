#include "sweep/scaling_law.h"

#include "base/parallel_for.h"
#include "base/rng.h"

namespace tokamak {

namespace {

using Variables = LawObjective::Variables;

constexpr size_t kRefined = 10;
constexpr double kGridStep = 0.05;
constexpr int kGridSize = 20;  // exponents 0.05 to 1
// A sample's law needs fewer digits than its interval is wide.
constexpr double kBootstrapFall = 1e-8;

constexpr int kSweeps = 300;

// argmin x'm x - 2 v x over x >= 0, for m and v of the normal equations, by coordinate descent. It starts BFGS, so it
// need not converge to the last digit.
SmallVector<3> non_negative_least_squares(const SmallMatrix<3>& m, const SmallVector<3>& v) {
  SmallVector<3> x{};
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t i = 0; i < 3; ++i) x[i] = std::max(0.0, x[i] + (v[i] - dot(m[i], x)) / m[i][i]);
  }
  return x;
}

}  // namespace

double ScalingLaw::loss(double size, double tokens) const {
  return E + A * std::pow(size, -alpha) + B * std::pow(tokens, -beta);
}

double ScalingLaw::best_size(double flops) const {
  const double g = std::pow(alpha * A / (beta * B), 1 / (alpha + beta));
  return g * std::pow(flops / 6, size_exponent());
}

LawObjective::LawObjective(const std::vector<LossPoint>& points) : weights_(points.size(), 1.0) {
  for (const LossPoint& point : points) {
    log_size_.push_back(std::log(point.size));
    log_tokens_.push_back(std::log(point.tokens));
    log_loss_.push_back(std::log(point.loss));
    mean_log_size_ += log_size_.back() / double(points.size());
    mean_log_tokens_ += log_tokens_.back() / double(points.size());
  }
  for (double& value : log_size_) value -= mean_log_size_;
  for (double& value : log_tokens_) value -= mean_log_tokens_;
}

double LawObjective::operator()(const Variables& x, Variables& gradient) const {
  const auto [a, b, e, alpha, beta] = x;
  gradient = {};
  double sum = 0;
  for (size_t i = 0; i < log_loss_.size(); ++i) {
    if (weights_[i] == 0) continue;
    const double u = a - alpha * log_size_[i], v = b - beta * log_tokens_[i], top = std::max({u, v, e});
    const double of_size = std::exp(u - top), of_tokens = std::exp(v - top), of_e = std::exp(e - top);
    const double all = of_size + of_tokens + of_e;
    const double residual = top + std::log(all) - log_loss_[i], far = std::abs(residual);
    sum += weights_[i] * (far <= kHuberDelta ? 0.5 * far * far : kHuberDelta * (far - 0.5 * kHuberDelta));
    const double slope = weights_[i] * std::clamp(residual, -kHuberDelta, kHuberDelta) / all;
    gradient[0] += slope * of_size;
    gradient[1] += slope * of_tokens;
    gradient[2] += slope * of_e;
    gradient[3] -= slope * of_size * log_size_[i];
    gradient[4] -= slope * of_tokens * log_tokens_[i];
  }
  return sum;
}

Variables LawObjective::variables_of(const ScalingLaw& law) const {
  return {std::log(law.A) - law.alpha * mean_log_size_, std::log(law.B) - law.beta * mean_log_tokens_, std::log(law.E),
          law.alpha, law.beta};
}

ScalingLaw LawObjective::law_of(const Variables& x) const {
  const auto [a, b, e, alpha, beta] = x;
  return {std::exp(e), std::exp(a + alpha * mean_log_size_), std::exp(b + beta * mean_log_tokens_), alpha, beta};
}

Variables LawObjective::least_squares(double alpha, double beta) const {
  SmallMatrix<3> m{};
  SmallVector<3> v{};
  for (size_t i = 0; i < log_loss_.size(); ++i) {
    const double per_loss = std::exp(-log_loss_[i]);
    const SmallVector<3> terms = {per_loss * std::exp(-alpha * log_size_[i]),
                                  per_loss * std::exp(-beta * log_tokens_[i]), per_loss};
    for (size_t j = 0; j < 3; ++j) m[j] = along(m[j], weights_[i] * terms[j], terms);
    v = along(v, weights_[i], terms);
  }
  const SmallVector<3> x = non_negative_least_squares(m, v);
  // A term that is 0 would have the logarithm -inf, from which no gradient leads back.
  const double least = 1e-6 * *std::max_element(x.begin(), x.end());
  return {std::log(std::max(x[0], least)), std::log(std::max(x[1], least)), std::log(std::max(x[2], least)), alpha,
          beta};
}

Minimum<5> fit_law(const LawObjective& objective) {
  std::vector<Minimum<5>> starts;
  for (int i = 1; i <= kGridSize; ++i) {
    for (int j = 1; j <= kGridSize; ++j) {
      Minimum<5> start{.at = objective.least_squares(kGridStep * i, kGridStep * j)};
      Variables ignored;
      start.value = objective(start.at, ignored);
      starts.push_back(start);
    }
  }
  const auto is_better = [](const Minimum<5>& a, const Minimum<5>& b) { return a.value < b.value; };
  std::partial_sort(starts.begin(), starts.begin() + kRefined, starts.end(), is_better);
  starts.resize(kRefined);
  for (Minimum<5>& start : starts) start = minimize(objective, start);
  return *std::min_element(starts.begin(), starts.end(), is_better);
}

std::vector<ScalingLaw> bootstrap(const LawObjective& objective, const Minimum<5>& fitted, int64_t samples) {
  const RandomStream random(0, "sweep/bootstrap");
  const int64_t runs = objective.size();
  std::vector<ScalingLaw> laws(samples);
  parallel_for(samples, 1, [&](int64_t begin, int64_t end) {
    LawObjective drawn = objective;
    for (int64_t k = begin; k < end; ++k) {
      std::vector<double> weights(runs, 0.0);
      for (int64_t i = 0; i < runs; ++i) weights[int64_t(random.uniform(k * runs + i) * double(runs))] += 1;
      drawn.set_weights(weights);
      Minimum<5> best = minimize(drawn, fitted, kBootstrapFall);
      for (const double factor : {0.75, 1.33}) {
        Minimum<5> other = fitted;
        other.at = drawn.least_squares(factor * fitted.at[3], fitted.at[4] / factor);
        other = minimize(drawn, other, kBootstrapFall);
        if (other.value < best.value) best = other;
      }
      laws[k] = drawn.law_of(best.at);
    }
  });
  return laws;
}

}  // namespace tokamak
