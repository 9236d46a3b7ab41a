// Options of the optimizer and of the learning rate over time.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

struct OptimizerOptions {
  std::string name = "adamw";
  double lr = 3e-4;
  std::array<double, 2> betas = {0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  bool decay_embeddings = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "adamw: decoupled weight decay, bias-corrected (Loshchilov and Hutter 2019)");
    v("lr", lr, "peak learning rate");
    v("betas", betas, "decay rates of the first and second moment");
    v("eps", eps, "added to the root of the second moment");
    v("weight_decay", weight_decay, "decay of matrices, times the learning rate; norm weights never decay");
    v("decay_embeddings", decay_embeddings, "whether the embedding and the head decay too");
  }
};

enum class DecayType { kCosine, kLinear, kWsd };
inline const std::vector<std::string>& enum_names(DecayType) {
  static const std::vector<std::string> names = {"cosine", "linear", "wsd"};
  return names;
}

struct ScheduleOptions {
  TrainingLength warmup = TrainingLength::fraction(0.01);
  DecayType decay_type = DecayType::kCosine;
  double decay_ratio = 0.1;
  double min_lr_factor = 0.1;

  template <class Visitor>
  void fields(Visitor& v) {
    v("warmup", warmup, "linear warm-up from 0: steps (2000), tokens (1B tokens) or a share of the run (1%)");
    v("decay_type", decay_type, "cosine or linear from warm-up to the end; wsd: constant, then linear at the end");
    v("decay_ratio", decay_ratio, "wsd: share of the run that decays");
    v("min_lr_factor", min_lr_factor, "final learning rate over the peak one");
  }
};

}  // namespace tokamak
