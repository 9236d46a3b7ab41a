// training.max_unit_grad_norm: the embedding, each layer, the head and all norms are clipped by themselves.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "model/golden.h"
#include "optim/grad_norm.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

constexpr double kMaxUnitNorm = 0.4, kMaxNorm = 0.6;

// The gradients of a step, summed over all targets of all ranks, and what is decided. Every rank computes the batch.
struct Gradients {
  std::map<std::string, std::vector<float>> parts;  // this rank's, by the weight's name
  std::map<std::string, int64_t> first;             // element of the weight
  double targets = 0, norm = 0, scale = 0;
};

Gradients gradients_of(Comm& comm, UnitSize units, double max_unit_norm) {
  const Golden golden("llama_gqa_untied");
  SmallModel small(golden.config, comm, {.units = units});
  small.load(golden.file);
  const Sequences batch(golden.file.values<int32_t>("t37/input_ids"), golden.file.values<int32_t>("t37/targets"), 37);
  std::vector<double> unit_sums(static_cast<size_t>(small.table.clip_units() * kStepSums));
  small.zero_sums();
  small.parameters.begin_step();
  small.model.forward_backward(*small.stream, batch.batch(), small.sums);
  small.model.finish_gradients(*small.stream);
  reduce_and_clip(small.parameters, *small.stream, small.sums, small.control,
                  {.max_norm = kMaxNorm,
                   .max_unit_norm = max_unit_norm,
                   .unit_sums = Tensor(unit_sums.data(), DType::kF64, {small.table.clip_units(), kStepSums})});
  small.stream->synchronize();
  Gradients g{{}, {}, small.sum(kSumTargets), small.decided(kGradNorm), small.decided(kGradScale)};
  small.for_each_part(small.parameters.gradients(), [&](const Param& param, Tensor part, int64_t first) {
    g.parts[param.name].assign(part.as<float>(), part.as<float>() + part.count());
    g.first[param.name] = first;
  });
  return g;
}

// "norms", "layer 1", or the weight itself.
std::string unit_of(const std::string& weight) {
  if (weight.find("norm") != std::string::npos) return "norms";
  const std::string layers = "model.layers.";
  return weight.find(layers) == 0 ? "layer " + weight.substr(layers.size(), 1) : weight;
}

std::map<std::string, double> norms_of_units(const Gradients& g) {
  std::map<std::string, double> norms;
  for (const auto& [name, values] : g.parts) {
    for (const float value : values) norms[unit_of(name)] += std::pow(double{value} / g.targets, 2);
  }
  for (auto& [unit, norm] : norms) norm = std::sqrt(norm);
  return norms;
}

}  // namespace

RANKS_CASE("each unit is clipped by itself, then all together, on any number of ranks and with any units") {
  const auto single = make_single_comm();
  const Gradients whole = gradients_of(*single, UnitSize::kLayer, 0);
  std::map<std::string, double> factors;
  double squares = 0;
  int clipped = 0;
  for (const auto& [unit, norm] : norms_of_units(whole)) {
    const double clip = std::min(1.0, kMaxUnitNorm / (norm + 1e-6));
    factors[unit] = clip;
    squares += std::pow(clip * norm, 2);
    clipped += clip < 1 ? 1 : 0;
  }
  CHECK((0 < clipped && clipped < static_cast<int>(factors.size())));
  for (const UnitSize units : {UnitSize::kLayer, UnitSize::kProjection}) {
    const Gradients g = gradients_of(world.comm(), units, kMaxUnitNorm);
    CHECK(g.norm == Approx(std::sqrt(squares)).epsilon(1e-5));
    CHECK(g.scale == Approx(std::min(1.0, kMaxNorm / std::sqrt(squares)) / g.targets).epsilon(1e-5));
    double worst = 0;
    for (const auto& [name, values] : g.parts) {
      const std::vector<float>& expected = whole.parts.at(name);
      for (size_t i = 0; i < values.size(); ++i) {
        const double mean = double{expected[static_cast<size_t>(g.first.at(name)) + i]} / whole.targets;
        worst = std::max(worst, std::abs(values[i] / g.targets - factors[unit_of(name)] * mean));
      }
    }
    CHECK(worst < 1e-6);
  }
}
