#include "train/benchmark.h"

#include <catch2/catch.hpp>

#include <map>

#include "model/flops.h"
#include "train/generate_benchmark.h"
#include "train/op_benchmark.h"
#include "train/peak.h"

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
  CHECK(by_name.at("swiglu_backward").bytes == 6 * 16 * 48 * 2);
  CHECK(by_name.at("attention").flops == 2 * 2 * (2 * 8 * 9 / 2) * 32);  // Q K^T and P V, half of each square
  CHECK(by_name.at("linear_cross_entropy").flops == 3 * 2.0 * 16 * 50 * 32);
  CHECK(by_name.at("gemm down dw").flops == 2.0 * 16 * 48 * 32);
  for (const char* name : {"rmsnorm_backward", "rope", "attention_backward", "swiglu", "embedding",
                           "embedding_backward", "adamw", "sum_squares", "cast", "gemm qkv forward", "gemm head dx"}) {
    CHECK(by_name.count(name) == 1);
  }
}

TEST_CASE("a step is timed with all its GEMMs, which its profile has too") {
  RunConfig config;
  config.model = small_model(32, 48, 2, 50);
  Backend backend = make_cpu_backend();
  const auto comm = make_single_comm();
  Assembly assembly(config, *comm, backend, {.max_tokens = 2 * 8, .max_length = 8});
  assembly.commit();
  assembly.parameters().initialize(1, assembly.compute());
  const BatchShape shape{{.length = 8, .sequences_per_step = 4, .sequences_per_rank = 4}, 2};
  const BenchmarkResult result = run_benchmark(assembly, shape, 2);
  CHECK(result.tokens_per_step == 32);
  CHECK(result.step_seconds > 0);
  CHECK(result.tokens_per_second == Approx(32 / result.step_seconds));
  CHECK(result.gemms.size() == 5 * 3);
  CHECK(result.gemm_rate > 0);
  // Two micro-batches; the head's GEMMs are another operation's.
  double flops = 0;
  for (const auto& [gemm, rate] : result.gemms) {
    CHECK(rate > 0);
    if (gemm.name.find("head") == std::string::npos) flops += 2 * static_cast<double>(gemm.count) * gemm.flops();
  }
  CHECK(result.profile.entries().at("gemm").flops == Approx(flops));
}

TEST_CASE("generation is timed beside a copy and the GEMMs of its prompts") {
  RunConfig config;
  config.model = small_model(32, 48, 2, 50);
  Backend backend = make_cpu_backend();
  const auto comm = make_single_comm();
  Assembly assembly(config, *comm, backend,
                    {.max_tokens = 8, .max_length = 12, .training = false, .cached_sequences = 2});
  assembly.commit();
  assembly.parameters().initialize(1, assembly.compute());
  const GenerateTimes times = benchmark_generate(assembly, {.sequences = 2, .prompt = 8, .tokens = 4, .rounds = 1});
  // All matrices but the embedding's lookup, in bf16.
  CHECK(times.weight_bytes == 2 * (2 * (32 * (32 + 2 * 16) + 32 * 32 + 3 * 32 * 48) + 50 * 32 + 5 * 32));
  CHECK(times.copy_rate > 0);
  CHECK(times.prompt_rate > 0);
  CHECK(times.prompt_gemm_rate > 0);
  CHECK(times.decode_rate() == Approx(2 / times.decode_seconds));
  CHECK(times.share_of_copy() == Approx(times.weight_bytes / times.decode_seconds / times.copy_rate));
  CHECK(times.share_of_traffic() == Approx(times.share_of_copy() / 2));
}

TEST_CASE("what MFU is against: the vendor's where there is one, else a GEMM measured now") {
  Backend cpu = make_cpu_backend();
  const Peak measured = peak_of(cpu, DType::kF32);
  CHECK(measured.flops > 0);
  CHECK(measured.source == "a 1024^3 GEMM, measured now");
}
