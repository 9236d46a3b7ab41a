// Padding of packed rows changes neither loss nor gradients; and runs of each order of the samples are the same on any
// number of ranks and after a resume.
#include <catch2/catch.hpp>

#include "data/order/pack_table.h"
#include "train/run_plan.h"
#include "train/step.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

constexpr int64_t kRow = 16;

struct PaddedRow {
  std::vector<float> gradients;
  double loss = 0, targets = 0;
};

// Gradients of one row: a document of 6 tokens, and then positions up to `length` that have `padding` as their token.
PaddedRow gradients_of(RunConfig config, int64_t length, int32_t padding) {
  config.model.vocab_size = 61;
  Backend backend = toy_backend();
  const auto comm = make_single_comm();
  Engine engine(engine_options(config, {.max_tokens = kRow, .max_length = kRow}), *comm, backend);
  engine.commit();
  engine.parameters().initialize(7, engine.compute());
  std::vector<int32_t> tokens = {5, 9, 14, 3, 60, 22}, targets = {9, 14, 3, 60, 22, 2}, positions = {0, 1, 2, 3, 4, 5};
  std::vector<int32_t> cu_seqlens = {0, 6};
  for (int32_t p = 0; p < length - 6; ++p) {
    tokens.push_back(padding);
    targets.push_back(-1);
    positions.push_back(p);
  }
  if (length > 6) cu_seqlens.push_back(static_cast<int32_t>(length));
  compute_gradients(
      engine,
      [&] {
        return TokenBatch{tokens, targets, positions, cu_seqlens};
      },
      1);
  engine.compute().synchronize();
  const Tensor gradients = engine.parameters().gradients();
  const auto* values = gradients.as<float>();
  const auto* sums = engine.sums().as<double>();
  return {{values, values + gradients.count()}, sums[kSumLoss], sums[kSumTargets]};
}

void check_invariance(const ToyPlace& place, const std::string& name, const std::function<void(RunConfig&)>& set) {
  INFO(name);
  const auto run = [&](const std::string& suffix, int ranks, int64_t stop) {
    RunConfig config = place.config(name + suffix, ranks);
    set(config);
    return train(ranks, config, {.stop_at_step = stop});
  };
  run("-1", 1, 0);
  run("-2", 2, 0);
  CHECK(worst_difference(records(place.run(name + "-1")), records(place.run(name + "-2"))) < 1e-5);
  run("-resumed", 2, 3);
  run("-resumed", 1, 0);
  CHECK(worst_difference(records(place.run(name + "-1")), records(place.run(name + "-resumed"))) < 1e-5);
}

}  // namespace

TEST_CASE("the loss and the gradients of a padded row are those of its documents, whatever the padding is") {
  const ToyPlace place;
  const RunConfig config = place.config("run");
  const PaddedRow plain = gradients_of(config, 6, 0);
  const PaddedRow padded = gradients_of(config, kRow, 0);
  const PaddedRow other = gradients_of(config, kRow, 33);
  CHECK(plain.targets == 6);
  CHECK(padded.targets == 6);
  CHECK(padded.gradients == other.gradients);  // to the bit
  CHECK(padded.loss == other.loss);
  CHECK(padded.loss == Approx(plain.loss).epsilon(1e-6));
  float largest = 0, worst = 0;
  for (size_t i = 0; i < plain.gradients.size(); ++i) {
    largest = std::max(largest, std::abs(plain.gradients[i]));
    worst = std::max(worst, std::abs(plain.gradients[i] - padded.gradients[i]));
  }
  CHECK(largest > 0);
  CHECK(worst < 1e-5f * largest);  // GEMMs of another height sum in another order
}

TEST_CASE("runs with packed rows, blocks and Megatron's order do not depend on ranks, and resume") {
  const ToyPlace place;
  FilePool pool;
  pack_dataset(open_dataset(place.file("train"), 1 << 20, pool), kRow, {});
  check_invariance(place, "packed", [](RunConfig& config) { config.data.packing = Packing::kBestFit; });
  check_invariance(place, "blocks", [](RunConfig& config) { config.data.shuffle_block = 4; });
  check_invariance(place, "megatron", [](RunConfig& config) { config.data.order = SampleOrder::kMegatron; });
  CHECK(records(place.run("packed-1")) != records(place.run("blocks-1")));
  CHECK(records(place.run("megatron-1")) != records(place.run("blocks-1")));
}
