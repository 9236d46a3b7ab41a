#include "train/benchmark.h"

#include <catch2/catch.hpp>

#include <map>

#include "model/flops.h"
#include "train/op_benchmark.h"

using namespace tokamak;

namespace {

ModelConfig small_model(int64_t hidden, int64_t intermediate, int64_t layers, int64_t vocab) {
  ModelConfig config;
  config.hidden_size = hidden;
  config.intermediate_size = intermediate;
  config.num_hidden_layers = layers;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.vocab_size = vocab;
  return config;
}

}  // namespace

TEST_CASE("the listed GEMMs have all the FLOPs of a step but attention's") {
  const ModelConfig config = small_model(64, 176, 3, 100);
  const int64_t tokens = 128;
  double flops = 0;
  for (const GemmShape& gemm : step_gemms(config, tokens, 32, DType::kBF16)) {
    flops += static_cast<double>(gemm.count) * gemm.flops();
  }
  const double norms = 6.0 * (2 * 3 + 1) * 64;  // counted as parameters, multiplied by no GEMM
  CHECK(flops == Approx(static_cast<double>(tokens) * (flops_per_token_full(config, 0) - norms)));
}

TEST_CASE("every operation of a step is timed by itself, with the bytes and FLOPs of its shapes") {
  const ModelConfig config = small_model(32, 48, 2, 50);
  Backend backend = make_cpu_backend();
  const OpTimes times =
      benchmark_ops(backend, config, {.sequences = 2, .length = 8, .compute = DType::kBF16, .rounds = 1});
  CHECK(times.copy_rate > 0);
  CHECK(times.gemm_rate > 0);
  CHECK(times.documents == 2);
  CHECK(times.length == 8);
  CHECK(times.heads.q_heads == 4);
  CHECK(times.heads.kv_heads == 2);
  CHECK(times.heads.head_dim == 8);
  std::map<std::string, OpTime> by_name;
  for (const OpTime& op : times.ops) {
    CHECK(op.seconds > 0);
    by_name[op.name] = op;
  }
  const double hidden = 16 * 32 * 2;  // bytes of (N, C) bf16
  CHECK(by_name.at("rmsnorm").bytes == 4 * hidden + 32 * 2 + 16 * 4);
  CHECK(by_name.at("swiglu_backward").bytes == 5 * 16 * 48 * 2);
  CHECK(by_name.at("attention").flops == 2 * 2 * (2 * 8 * 9 / 2) * 32);  // Q K^T and P V, half of each square
  CHECK(by_name.at("linear_cross_entropy").flops == 3 * 2.0 * 16 * 50 * 32);
  CHECK(by_name.at("gemm down dw").flops == 2.0 * 16 * 48 * 32);
  for (const char* name : {"rmsnorm_backward", "rope", "attention_backward", "swiglu", "embedding",
                           "embedding_backward", "adamw", "sum_squares", "cast", "gemm qkv forward", "gemm head dx"}) {
    CHECK(by_name.count(name) == 1);
  }
}
