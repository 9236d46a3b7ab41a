// Chinchilla's law of loss, L(N, D) = E + A / N^alpha + B / D^beta (Hoffmann et al., arXiv 2203.15556, approach 3), and
// its fit to finished runs. The objective is a sum over the runs, never a mean: with a mean, the published fit stopped
// early and its exponents were wrong (arXiv 2404.10102). Everything is deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "sweep/minimize.h"

namespace tokamak {

// One finished run.
struct LossPoint {
  double size = 0;    // N, parameters
  double tokens = 0;  // D
  double loss = 0;    // nats a token
};

struct ScalingLaw {
  double E = 0, A = 0, B = 0, alpha = 0, beta = 0;

  double loss(double size, double tokens) const;
  double size_exponent() const { return beta / (alpha + beta); }  // a: the best N grows as C^a
  // The N whose loss is least for C = 6 N D FLOPs (equation 4 of the paper).
  double best_size(double flops) const;
};

constexpr double kHuberDelta = 1e-3;

// The objective in the law's unbounded variables, for weighted runs:
//   sum of w Huber(LSE(a - alpha ln N, b - beta ln D, e) - ln L), with a = ln A, b = ln B, e = ln E.
// N and D are taken relative to their geometric means. That removes most of the correlation of a with alpha and of b
// with beta, and changes nothing else.
class LawObjective {
 public:
  explicit LawObjective(const std::vector<LossPoint>& points);

  using Variables = SmallVector<5>;  // a, b, e, alpha, beta, for relative N and D
  double operator()(const Variables& x, Variables& gradient) const;

  Variables variables_of(const ScalingLaw& law) const;
  ScalingLaw law_of(const Variables& x) const;

  // The law with the least relative squared error for these exponents, with E, A, B >= 0.
  Variables least_squares(double alpha, double beta) const;

  int64_t size() const { return static_cast<int64_t>(log_loss_.size()); }
  void set_weights(const std::vector<double>& weights) { weights_ = weights; }  // one for each run; 1 at first

 private:
  std::vector<double> log_size_, log_tokens_, log_loss_;  // the first two without their means
  std::vector<double> weights_;
  double mean_log_size_ = 0, mean_log_tokens_ = 0;
};

// Tries a grid of exponents with least_squares(), and refines the best ten by BFGS.
Minimum<5> fit_law(const LawObjective& objective);
inline ScalingLaw fit_law(const std::vector<LossPoint>& points) {
  const LawObjective objective(points);
  return objective.law_of(fit_law(objective).at);
}

// Laws of `samples` draws of as many runs with replacement. Each is refined from the full fit and two other starts.
// Draw k is a pure function of k.
std::vector<ScalingLaw> bootstrap(const LawObjective& objective, const Minimum<5>& fitted, int64_t samples);

}  // namespace tokamak
