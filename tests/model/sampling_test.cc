#include "model/sampling.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace tokamak;

namespace {

const std::vector<float> kLogits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

}  // namespace

TEST_CASE("temperature 0 takes the likeliest token, the lower id of a tie") {
  CHECK(sample_token(kLogits, {.temperature = 0}, 0.99) == 1);
  CHECK(sample_token(std::vector<float>{1, 2, 2}, {.temperature = 0}, 0.99) == 1);
}

TEST_CASE("draws follow the probabilities, likeliest first") {
  const SamplingOptions all{.temperature = 1, .top_k = 0, .top_p = 1};
  CHECK(sample_token(kLogits, all, 0.39) == 1);
  CHECK(sample_token(kLogits, all, 0.41) == 3);
  CHECK(sample_token(kLogits, all, 0.69) == 3);
  CHECK(sample_token(kLogits, all, 0.71) == 2);
  CHECK(sample_token(kLogits, all, 0.91) == 0);
}

TEST_CASE("top_k and top_p leave only the likeliest, and these share the draw") {
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 2, .top_p = 1}, 0.999) == 3);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 1, .top_p = 1}, 0.999) == 1);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 0, .top_p = 0.65}, 0.999) == 3);  // 0.4 + 0.3
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 0, .top_p = 0.01}, 0.999) == 1);  // never none
}

TEST_CASE("a high temperature flattens, a low one sharpens") {
  CHECK(sample_token(kLogits, {.temperature = 1e6, .top_k = 0, .top_p = 1}, 0.30) == 3);  // nearly uniform
  CHECK(sample_token(kLogits, {.temperature = 0.05, .top_k = 0, .top_p = 1}, 0.99) == 1);
}
