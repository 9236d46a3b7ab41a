// The rotary frequencies under every kind of rope_scaling, against transformers' own (tests/golden/README.md).
#include "model/rope_table.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/golden.h"

using namespace tokamak;

namespace {

ModelConfig one_head(int64_t head_dim, double theta) {
  ModelConfig config;
  config.num_attention_heads = 1;
  config.head_dim = head_dim;
  config.rope_theta = theta;
  return config;
}

double largest_relative_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] / expected[i] - 1);
    if (!(error <= largest)) largest = error;  // NaN too
  }
  return largest;
}

}  // namespace

TEST_CASE("the rotary table holds cosines, then sines, of position times frequency") {
  const auto table = make_rope_table(one_head(8, 10000.0), 5, 5);
  REQUIRE(table.size() == 5 * 8);
  CHECK(table[0] == 1.0f);
  CHECK(table[4] == 0.0f);
  CHECK(table[3 * 8 + 2] == Approx(std::cos(3 * 0.01)));  // w_2 = 10000^(-4/8)
  CHECK(table[3 * 8 + 4 + 2] == Approx(std::sin(3 * 0.01)));
}

TEST_CASE("frequencies and attention factor of each rope_type are those of transformers") {
  const SafetensorsFile file(test_data() + "/rope_frequencies.safetensors", Kind::kData);
  const auto cases = nlohmann::json::parse(file.metadata().at("cases"));
  REQUIRE(cases.size() == 23);
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].dump());
    ModelConfig config = one_head(cases[i].at("head_dim"), cases[i].at("rope_theta"));
    config.max_position_embeddings = cases[i].at("max_position_embeddings");
    FromJson scaling{cases[i].at("rope_scaling")};
    config.rope_scaling.fields(scaling);
    CHECK(config.rope_scaling.problems(config.max_position_embeddings).empty());
    const RopeFrequencies actual = rope_frequencies(config, cases[i].at("length"));
    const auto floats = file.values<float>(str(i, "/w"));
    // transformers computes them in f32, so theta's exponent is off by up to half a unit in its last place
    CHECK(largest_relative_error(actual.w, {floats.begin(), floats.end()}) < 2e-6);
    CHECK(actual.attention_factor == Approx(cases[i].at("attention_factor").get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("the attention factor multiplies cosines and sines") {
  ModelConfig config = one_head(8, 10000.0);
  const auto plain = make_rope_table(config, 5, 5);
  config.rope_scaling.rope_type = RopeType::kYarn;
  config.rope_scaling.factor = 1;
  config.rope_scaling.original_max_position_embeddings = 1024;
  config.rope_scaling.attention_factor = 1.5;
  const auto table = make_rope_table(config, 5, 5);
  for (size_t i = 0; i < table.size(); ++i) CHECK(table[i] == Approx(1.5 * plain[i]).margin(1e-12));
}

TEST_CASE("a table of dynamic scaling depends on the requested length, not on its rows") {
  ModelConfig config = one_head(8, 10000.0);
  config.max_position_embeddings = 16;
  const auto plain = make_rope_table(config, 20, 20);
  config.rope_scaling.rope_type = RopeType::kDynamic;
  config.rope_scaling.factor = 2;
  CHECK(make_rope_table(config, 20, 16) == plain);
  const auto longer = make_rope_table(config, 4, 40);
  // theta' = 10000 (2 40/16 - 1)^(8/6): w_3 = theta'^(-6/8) = 10000^(-3/4) / 4
  CHECK(longer[3 * 8 + 4 + 3] == Approx(std::sin(3 * 0.001 / 4)));
}
