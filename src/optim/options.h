// Options of the optimizer and the learning rate schedule.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class MomentType { kF32, kBF16 };
inline const std::vector<std::string>& enum_names(MomentType) {
  static const std::vector<std::string> names = {"f32", "bf16"};
  return names;
}

enum class NewtonSchulzCoefficients { kJordan, kPolarExpress };
inline const std::vector<std::string>& enum_names(NewtonSchulzCoefficients) {
  static const std::vector<std::string> names = {"jordan", "polar_express"};
  return names;
}

enum class MuonScale { kMatchRmsAdamW, kOriginal, kSpectral };
inline const std::vector<std::string>& enum_names(MuonScale) {
  static const std::vector<std::string> names = {"match_rms_adamw", "original", "spectral"};
  return names;
}

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t steps = 5;
  NewtonSchulzCoefficients coefficients = NewtonSchulzCoefficients::kJordan;
  MuonScale scale = MuonScale::kMatchRmsAdamW;

  template <class Visitor>
  void fields(Visitor& v) {
    v("momentum", momentum, "decay of the momentum that is orthogonalised; higher values average over more steps");
    v("nesterov", nesterov, "orthogonalise momentum that includes the next step's decay, as torch.optim.Muon does");
    v("steps", steps, "Newton-Schulz iterations; more bring singular values closer to 1, and each costs three GEMMs");
    v("coefficients", coefficients,
      "jordan: one polynomial for all steps; polar_express: five that bring small singular values closer to 1, for "
      "steps: 5 alone");
    v("scale", scale,
      "match_rms_adamw: 0.2 sqrt(max(A, B)) of an (A, B) matrix, for AdamW's lr and decay; original: "
      "sqrt(max(1, A/B)), for an lr near 0.02; spectral: sqrt(A/B)");
  }
};

struct OptimizerGroup {
  std::vector<std::string> match;
  std::string name;
  double lr_scale = 1.0;
  AutoNumber weight_decay;

  template <class Visitor>
  void fields(Visitor& v) {
    v("match", match,
      "patterns of weights' Hugging Face names, with * and ?, as in [\"*norm.weight\"]; the first group that matches "
      "counts");
    v("name", name, "adamw or muon; empty: what the weights have without the group");
    v("lr_scale", lr_scale, "factor of the learning rate; 0 freezes the weights: no update, no decay");
    v("weight_decay", weight_decay, "decay of these weights; auto: what they have without the group");
  }
};

struct OptimizerOptions {
  std::string name = "adamw";
  double lr = 3e-4;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  bool decay_embeddings = true;
  MomentType moments = MomentType::kF32;
  MuonOptions muon;
  std::vector<OptimizerGroup> groups;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name,
      "adamw (Loshchilov and Hutter 2019); muon (Jordan 2024) for the matrices of layers, adamw for all else: fewer "
      "steps to a loss, more GEMMs in each");
    v("lr", lr,
      "peak learning rate; too high, the loss diverges; too low, it falls slowly; larger models need smaller ones");
    v("betas", betas,
      "decay rates of the first and second moment; a lower second one adapts sooner after a loss spike");
    v("eps", eps,
      "added to the root of the second moment; larger values shrink the updates of weights with small gradients");
    v("weight_decay", weight_decay,
      "decay of matrices, times the learning rate; larger values keep weights smaller. Norm weights and biases never "
      "decay");
    v("decay_embeddings", decay_embeddings,
      "decay the embedding and the head too; rare tokens shrink between their updates");
    v("moments", moments,
      "dtype of stored moments; bf16, rounded at random, saves 4 bytes a parameter of memory and checkpoints and "
      "adds noise to updates");
    v("muon", muon, "the update of matrices by Muon");
    v("groups", groups, "weights with an optimizer, learning rate or decay of their own");
  }
};

struct AverageOptions {
  std::string name;
  TrainingLength half_life;
  int64_t every = 8;
  TrainingLength start;

  bool is_exponential() const { return half_life != TrainingLength::none(); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name,
      "name of the average in metrics, checkpoints and `--weights`, for example ema; no two have the same");
    v("half_life", half_life,
      "tokens after which weights count half, in an exponential average; a longer one is smoother and lags more; none: "
      "the plain mean");
    v("every", every,
      "steps between updates; each moves 12 bytes a weight, 8 of them to and from the host; a higher number averages "
      "fewer weights");
    v("start", start,
      "step, tokens or share of the run after which the average begins, with the weights of that step; none: step 1");
  }
};

enum class DecayType { kConstant, kWsd, kCosine, kLinear, kInverseSqrt, kRestarts };
inline const std::vector<std::string>& enum_names(DecayType) {
  static const std::vector<std::string> names = {"constant", "wsd", "cosine", "linear", "inverse_sqrt", "restarts"};
  return names;
}

enum class DecayShape { kLinear, kSqrt, kCosine, kExponential };
inline const std::vector<std::string>& enum_names(DecayShape) {
  static const std::vector<std::string> names = {"linear", "sqrt", "cosine", "exponential"};
  return names;
}

struct ScheduleOptions {
  TrainingLength warmup = TrainingLength::fraction(0.01);
  DecayType decay_type = DecayType::kCosine;
  TrainingLength decay_start;
  double decay_ratio = 0.1;
  DecayShape decay_shape = DecayShape::kLinear;
  double min_lr_factor = 0.1;
  TrainingLength cycle_length;
  double cycle_length_factor = 1;
  double cycle_peak_factor = 1;

  bool operator==(const ScheduleOptions&) const = default;

  bool has_tail() const { return decay_type == DecayType::kWsd || decay_start != TrainingLength::none(); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup,
      "linear warm-up from 0: steps (2000), tokens (1B tokens) or a share of the run (1%); too short a warm-up makes "
      "early updates unstable");
    v("decay_type", decay_type,
      "after the warm-up: constant; wsd: constant, then a tail, so that a run can be extended before it; cosine, "
      "linear, inverse_sqrt; restarts: cosine cycles");
    v("decay_start", decay_start,
      "step, tokens or share of the run at which a tail begins, after any decay_type; none: only wsd has one; a later "
      "start trains longer at the full rate");
    v("decay_ratio", decay_ratio,
      "wsd without decay_start: share of the run that its tail takes; 10 to 20 % are usual, far less leaves loss on the "
      "table");
    v("decay_shape", decay_shape,
      "shape of the tail; sqrt (1 - sqrt p) falls fastest at first, and ends lower than linear in published tests; "
      "exponential needs min_lr_factor above 0");
    v("min_lr_factor", min_lr_factor, "final and lowest learning rate divided by the peak one; 0 decays to nothing");
    v("cycle_length", cycle_length,
      "restarts: length of the first cycle, in steps, tokens or as a share of the run; shorter cycles restart more "
      "often");
    v("cycle_length_factor", cycle_length_factor,
      "restarts: length of a cycle divided by that of the one before; 2 doubles each");
    v("cycle_peak_factor", cycle_peak_factor,
      "restarts: peak of a cycle divided by that of the one before; below 1, restarts disturb less");
  }
};

}  // namespace tokamak
