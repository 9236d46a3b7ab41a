// Models of every family are sharded among ranks without a change of their results.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/strings.h"
#include "model/golden.h"
#include "optim/grad_norm.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

struct Step {
  double loss, norm;
};

// Three steps of AdamW; every rank computes the whole batch, which changes neither the mean loss nor its gradient.
std::vector<Step> three_steps(const ModelConfig& config, Comm& comm, const Golden& golden) {
  SmallModel small(config, comm, {});
  small.parameters.initialize(1, *small.stream);
  const Sequences batch(golden.file.values<int32_t>("t37/input_ids"), golden.file.values<int32_t>("t37/targets"), 37);
  std::vector<Step> steps;
  for (int64_t step = 1; step <= 3; ++step) {
    small.zero_sums();
    small.parameters.begin_step();
    small.model.forward_backward(*small.stream, batch.batch(), small.sums);
    small.model.finish_gradients(*small.stream);
    reduce_and_clip(small.parameters, *small.stream, small.sums, small.control, {.max_norm = 1});
    small.optimizer->step(*small.stream, {.t = step, .lr = 0.01, .control = small.control});
    steps.push_back({small.decided(kMeanLoss), small.decided(kGradNorm)});
  }
  return steps;
}

// Catch's INFO is for one thread.
std::string difference(const std::vector<Step>& expected, const std::vector<Step>& found, const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-5 * b; };
    if (!near(found[i].loss, expected[i].loss) || !near(found[i].norm, expected[i].norm)) {
      return str(what, ", step ", i, ": loss ", found[i].loss, " for ", expected[i].loss, ", norm ", found[i].norm,
                 " for ", expected[i].norm);
    }
  }
  return "";
}

}  // namespace

RANKS_CASE("three steps of a model of each family have the losses and gradient norms of one rank") {
  for (const char* name : {"llama_gqa_tied", "llama_biases", "mistral_window", "qwen3_window", "smollm3", "olmo2",
                           "olmo3", "gemma2", "gemma3"}) {
    const Golden golden(name);
    for (const bool embedding_norm : {false, true}) {
      ModelConfig config = golden.config;
      if (embedding_norm && config.scale_embeddings) continue;
      config.embedding_norm = embedding_norm;
      const auto single = make_single_comm();
      const std::vector<Step> expected = three_steps(config, *single, golden);
      const std::vector<Step> found = three_steps(config, world.comm(), golden);
      CHECK(difference(expected, found, str(name, embedding_norm ? ", embedding_norm" : "")) == "");
    }
  }
}
