#include "train/batch_shape.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;

namespace {

TrainingOptions training(int64_t batch_tokens, int64_t micro_batch) {
  TrainingOptions options;
  options.max_steps = 7;
  options.global_batch_tokens = batch_tokens;
  options.micro_batch_size.value = micro_batch;
  return options;
}

DataOptions data() {
  DataOptions options;
  options.sequence_length = 32;
  return options;
}

}  // namespace

TEST_CASE("a global batch is shared equally, in micro-batches of which the last may be smaller") {
  const BatchShape shape{make_global_batch(training(24 * 32, 5), data(), 2), 5};
  CHECK(shape.sequences_per_step == 24);
  CHECK(shape.sequences_per_rank == 12);
  CHECK(shape.micro_batches() == 3);
  CHECK(shape.tokens_per_step() == 768);
  CHECK(shape.total_steps == 7);
}

TEST_CASE("a length in tokens is rounded up to whole steps") {
  TrainingOptions options = training(768, 1);
  options.max_steps = 0;
  options.max_tokens = 769;
  CHECK(make_global_batch(options, data(), 1).total_steps == 2);
}

TEST_CASE("a batch that the ranks cannot share is refused, with the nearest ones that they can") {
  try {
    make_global_batch(training(768, 1), data(), 5);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK(std::string(error.what()).find("training.global_batch_tokens is 768") != std::string::npos);
    CHECK(error.hint().find("640 or 800") != std::string::npos);
  }
}

TEST_CASE("a micro-batch beyond a rank's share is refused") {
  CHECK_THROWS_WITH(make_global_batch(training(768, 13), data(), 2), Catch::Contains("13") && Catch::Contains("12"));
}
