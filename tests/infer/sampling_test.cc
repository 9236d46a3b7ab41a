#include "infer/sampling.h"

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

TEST_CASE("ties go to the lower id, at the cut of top_k too") {
  const std::vector<float> tied = {1, 3, 3, 3};
  CHECK(sample_token(tied, {.temperature = 1, .top_k = 2, .top_p = 1}, 0.49) == 1);
  CHECK(sample_token(tied, {.temperature = 1, .top_k = 2, .top_p = 1}, 0.999) == 2);
  CHECK(sample_token(tied, {.temperature = 1, .top_k = 3, .top_p = 1}, 0.999) == 3);
}

TEST_CASE("top_k beyond the vocabulary is all of it; a tiny top_p or temperature leaves the likeliest") {
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 1000, .top_p = 1}, 0.91) == 0);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 4, .top_p = 1}, 0.91) == 0);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 0, .top_p = 1e-300}, 0.999) == 1);
  CHECK(sample_token(kLogits, {.temperature = 1e-320, .top_k = 0, .top_p = 1}, 0.999) == 1);
  CHECK(sample_token(std::vector<float>{5}, {.temperature = 1, .top_k = 0, .top_p = 0.5}, 0.999) == 0);
}

TEST_CASE("top_p counts the probabilities of what top_k has left, after the temperature") {
  // The two likeliest have 4/7 and 3/7: 0.56 needs one, 0.58 both. Without top_k, 0.58 would need 0.4 + 0.3 too, and
  // 0.35 one.
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 2, .top_p = 0.56}, 0.999) == 1);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 2, .top_p = 0.58}, 0.999) == 3);
  CHECK(sample_token(kLogits, {.temperature = 1, .top_k = 0, .top_p = 0.56}, 0.999) == 3);
  // At temperature 1/2 the probabilities are 1, 16, 4, 9 of 30.
  CHECK(sample_token(kLogits, {.temperature = 0.5, .top_k = 0, .top_p = 0.52}, 0.999) == 1);
  CHECK(sample_token(kLogits, {.temperature = 0.5, .top_k = 0, .top_p = 0.55}, 0.999) == 3);
}

TEST_CASE("draws over many tokens follow their probabilities, far beyond those that are sorted first") {
  // 1000 tokens of equal probability in the order of their ids, but for the last, which is likeliest.
  std::vector<float> flat(1000, 0.0f);
  flat[999] = std::log(2.0f);
  const SamplingOptions all{.temperature = 1, .top_k = 0, .top_p = 1};
  CHECK(sample_token(flat, all, 1.9 / 1001) == 999);
  CHECK(sample_token(flat, all, 2.1 / 1001) == 0);
  for (const int id : {62, 63, 64, 255, 500, 998}) CHECK(sample_token(flat, all, (id + 2.5) / 1001) == id);
  CHECK(sample_token(flat, {.temperature = 1, .top_k = 0, .top_p = 301.5 / 1001}, 0.9999) == 299);
  CHECK(sample_token(flat, {.temperature = 1, .top_k = 300, .top_p = 1}, 0.9999) == 298);
}

TEST_CASE("the repetition penalty divides positive logits and multiplies negative ones, once for each id seen") {
  std::vector<float> logits = {2, -2, 3, 0, 5};
  penalise_repetition(logits, std::vector<int32_t>{1, 0, 1, 3, 0, 0}, 2.0);
  CHECK(logits == std::vector<float>{1, -4, 3, 0, 5});
  penalise_repetition(logits, std::vector<int32_t>{4}, 1.0);
  CHECK(logits[4] == 5);
  penalise_repetition(logits, std::vector<int32_t>{4, 1}, 0.5);  // below 1 it rewards
  CHECK(logits == std::vector<float>{1, -2, 3, 0, 10});
  penalise_repetition(logits, std::vector<int32_t>{-1, 5, 1000}, 2.0);  // ids without a logit here
  CHECK(logits == std::vector<float>{1, -2, 3, 0, 10});
}

TEST_CASE("logits that are not numbers are an error, minus infinity is a token that is never drawn") {
  const float nan = std::nanf(""), inf = INFINITY;
  const SamplingOptions all{.temperature = 1, .top_k = 0, .top_p = 1};
  CHECK_THROWS_WITH(sample_token(std::vector<float>{1, nan}, all, 0.5), Catch::Contains("token 1 is not a number"));
  CHECK_THROWS_WITH(sample_token(std::vector<float>{1, inf}, all, 0.5), Catch::Contains("token 1 is inf"));
  CHECK_THROWS_WITH(sample_token(std::vector<float>{-inf, -inf}, {.temperature = 0}, 0.5), Catch::Contains("-inf"));
  CHECK(sample_token(std::vector<float>{-inf, 1, -inf}, all, 0.9999) == 1);
}
