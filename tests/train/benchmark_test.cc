#include "train/benchmark.h"

#include <catch2/catch.hpp>

#include "model/flops.h"

using namespace tokamak;

TEST_CASE("the listed GEMMs have all the FLOPs of a step but attention's") {
  ModelConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 176;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.vocab_size = 100;
  const int64_t tokens = 128;
  double flops = 0;
  for (const GemmShape& gemm : step_gemms(config, tokens, 32, DType::kBF16)) {
    flops += static_cast<double>(gemm.count) * gemm.flops();
  }
  const double norms = 6.0 * (2 * 3 + 1) * 64;  // counted as parameters, multiplied by no GEMM
  CHECK(flops == Approx(static_cast<double>(tokens) * (flops_per_token_full(config, 0) - norms)));
}
