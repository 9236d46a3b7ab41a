#include "train/batch_shape.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;

namespace {

RunConfig batch(int64_t tokens, int64_t micro_batch) {
  RunConfig config;
  config.data.sequence_length = 32;
  config.training.max_steps = 7;
  config.training.global_batch_tokens = tokens;
  config.training.micro_batch_size.value = micro_batch;
  return config;
}

}  // namespace

TEST_CASE("a global batch is shared equally, in micro-batches of which the last may be smaller") {
  const BatchShape shape{make_global_batch(batch(24 * 32, 5), 2), 5};
  CHECK(shape.sequences_per_step == 24);
  CHECK(shape.sequences_per_rank == 12);
  CHECK(shape.micro_batches() == 3);
  CHECK(shape.tokens_per_step() == 768);
  CHECK(shape.total_steps == 7);
  const GlobalBatch pairs = make_global_batch(batch(24 * 32, 5), 4, 2);  // two ranks in a row read the same samples
  CHECK((pairs.sequences_per_rank == 12 && pairs.data_ranks() == 2));
}

TEST_CASE("a length in tokens is rounded up to whole steps") {
  RunConfig config = batch(768, 1);
  config.training.max_steps = 0;
  config.training.max_tokens = 769;
  CHECK(make_global_batch(config, 1).total_steps == 2);
}

TEST_CASE("a batch that is no multiple of the length is refused, not cut") {
  try {
    make_global_batch(batch(48, 1), 1);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK(std::string(error.what()).find("48, which is no multiple of data.sequence_length (32)") != std::string::npos);
  }
}

TEST_CASE("a batch that the ranks cannot share is refused, with the nearest ones that they can") {
  try {
    make_global_batch(batch(768, 1), 5);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK(std::string(error.what()).find("training.global_batch_tokens is 768") != std::string::npos);
    CHECK(error.hint().find("640 or 800") != std::string::npos);
  }
}

TEST_CASE("a micro-batch beyond a rank's share is refused") {
  CHECK_THROWS_WITH(make_global_batch(batch(768, 13), 2), Catch::Contains("13") && Catch::Contains("12"));
}
