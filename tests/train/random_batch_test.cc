// Random documents are cut as data/loader.h defines them, and are the same on every rank.
#include "train/random_batch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace tokamak;

namespace {

BatchShape shape_of(int64_t length, int64_t sequences_per_rank, int64_t micro_batch) {
  BatchShape shape;
  shape.length = length;
  shape.sequences_per_step = shape.sequences_per_rank = sequences_per_rank;
  shape.micro_batch = micro_batch;
  return shape;
}

struct Copy {
  std::vector<int32_t> tokens, targets, positions, cu_seqlens;
  bool operator==(const Copy&) const = default;
};

std::vector<Copy> step_of(RandomBatch& batch, const BatchShape& shape) {
  const auto copy = [](std::span<const int32_t> values) { return std::vector<int32_t>(values.begin(), values.end()); };
  std::vector<Copy> copies;
  const NextBatch next = batch.step();
  for (int64_t m = 0; m < shape.micro_batches(); ++m) {
    const TokenBatch view = next();
    copies.push_back({copy(view.tokens), copy(view.targets), copy(view.positions), copy(view.cu_seqlens)});
  }
  return copies;
}

}  // namespace

TEST_CASE("random documents end with their sequence, and positions count from 0 in each") {
  const BatchShape shape = shape_of(64, 7, 3);  // the last micro-batch has one sequence
  RandomBatch batch(shape, {.vocab = 50, .mean_document = 10});
  const std::vector<Copy> step = step_of(batch, shape);
  REQUIRE(step.size() == 3);
  for (size_t m = 0; m < step.size(); ++m) {
    const std::vector<int32_t>& bounds = step[m].cu_seqlens;
    const auto tokens = static_cast<int32_t>(step[m].tokens.size());
    CHECK(tokens == (m == 2 ? 64 : 3 * 64));
    CHECK(step[m].targets.size() == step[m].tokens.size());
    CHECK(bounds.size() > static_cast<size_t>(tokens / 64 + 1));
    CHECK(bounds.front() == 0);
    CHECK(bounds.back() == tokens);
    for (int32_t end = 64; end <= tokens; end += 64) CHECK(std::count(bounds.begin(), bounds.end(), end) == 1);
    REQUIRE(step[m].positions.size() == step[m].tokens.size());
    for (size_t d = 0; d + 1 < bounds.size(); ++d) {
      REQUIRE(bounds[d] < bounds[d + 1]);
      for (int32_t i = bounds[d]; i < bounds[d + 1]; ++i) {
        REQUIRE(step[m].positions[static_cast<size_t>(i)] == i - bounds[d]);
      }
    }
  }
  CHECK(step[0].cu_seqlens != step[1].cu_seqlens);
  CHECK(batch.most_documents().size() >= step[0].cu_seqlens.size());
  CHECK(batch.most_documents().size() >= step[1].cu_seqlens.size());
}

TEST_CASE("every rank and every step has the same random documents, with tokens of the rank's own") {
  const BatchShape shape = shape_of(64, 4, 2);
  RandomBatch batch(shape, {.vocab = 50, .rank = 0, .mean_document = 10});
  RandomBatch other(shape, {.vocab = 50, .rank = 3, .mean_document = 10});
  const std::vector<Copy> first = step_of(batch, shape), second = step_of(batch, shape), theirs = step_of(other, shape);
  CHECK(first == second);
  for (size_t m = 0; m < first.size(); ++m) {
    CHECK(first[m].cu_seqlens == theirs[m].cu_seqlens);
    CHECK(first[m].positions == theirs[m].positions);
    CHECK(first[m].tokens != theirs[m].tokens);
  }
}

TEST_CASE("without a mean each sequence is one document") {
  const BatchShape shape = shape_of(8, 2, 2);
  RandomBatch batch(shape, {.vocab = 50});
  const std::vector<Copy> step = step_of(batch, shape);
  CHECK(step[0].cu_seqlens == std::vector<int32_t>{0, 8, 16});
  CHECK(step[0].positions == std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("lengths of random documents are exponential with their mean") {
  // The one sequence cuts one document of some 10,000. The mean of n draws is within 4 / sqrt(n) of kMean. The share of
  // longer ones is within 4 sqrt(p (1 - p) / n) of p = 1 / e. Lengths are rounded to a token of 100.
  constexpr double kMean = 100;
  const BatchShape shape = shape_of(1'000'000, 1, 1);
  RandomBatch batch(shape, {.vocab = 50, .mean_document = static_cast<int64_t>(kMean)});
  const std::vector<int32_t>& bounds = batch.most_documents();
  const auto n = static_cast<double>(bounds.size() - 1);
  CHECK(1e6 / n == Approx(kMean).epsilon(4 / std::sqrt(n)));
  double beyond = 0;
  for (size_t d = 0; d + 1 < bounds.size(); ++d) beyond += bounds[d + 1] - bounds[d] > kMean ? 1 : 0;
  const double p = std::exp(-1.0);
  CHECK(beyond / n == Approx(p).margin(4 * std::sqrt(p * (1 - p) / n) + 0.5 / kMean * p));
}
