// The trace of a step whose values are all finite: no buffer's padding or unused part is taken for a value.
#include <catch2/catch.hpp>

#include "train/toy_training.h"

using namespace tokamak;

TEST_CASE("a trace that is stopped before its step saves nothing, so the next one begins with its checkpoint") {
  const ToyPlace place;
  const RunConfig config = place.config("run", 2);
  CHECK(train(2, config, {.stop_at_step = 2, .trace_step = 4}) == RunEnd::kStopped);
  CHECK(steps_of(place, "run").empty());
}

TEST_CASE("the trace of a sound step finds nothing, whatever is sharded, replicated and recomputed") {
  const ToyPlace place;
  struct Variant {
    int ranks;
    int64_t replicas, stage;
    RecomputeMode recompute;
    bool in_bf16;
  };
  for (const Variant& variant :
       {Variant{1, 1, 3, RecomputeMode::kNone, false}, Variant{2, 1, 1, RecomputeMode::kSelective, true},
        Variant{3, 1, 2, RecomputeMode::kFull, false}, Variant{3, 1, 3, RecomputeMode::kFull, true},
        Variant{4, 2, 3, RecomputeMode::kNone, true}}) {
    const std::string name = str("sound-", variant.ranks, "-", variant.stage);
    INFO(name);
    RunConfig config = place.config(name, variant.ranks);
    if (variant.in_bf16) config.precision.compute = Precision::kBF16;
    config.training.micro_batch_size.value = 2;
    config.parallelism.data_parallel_replicate_degree = variant.replicas;
    config.parallelism.zero_stage = variant.stage;
    config.activation_checkpoint.mode = variant.recompute;
    config.model.tie_word_embeddings = variant.ranks == 3;
    config.model.qkv_bias = 2;
    if (2) config.model.qk_norm = QkNormKind::kHead;
    CHECK(train(variant.ranks, config, {.trace_step = 4}) == RunEnd::kDone);
    const MetricRecord record = last_event(place.run(name), "non_finite");
    CHECK(record.step == 4);
    CHECK(record.event->detail == "step 4: every value is finite when it is computed again");
    CHECK(record.event->texts.empty());
  }
}
