// The results that bench prints: units, and the meaning of a share beyond a copy's rate.
#include "cli/bench_report.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "model/flops.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a step is reported by three counts of its FLOPs, of which mfu_done has the attention inside documents") {
  RunConfig config;
  config.model.hidden_size = 32;
  config.model.intermediate_size = 48;
  config.model.num_hidden_layers = 3;
  config.model.num_attention_heads = config.model.num_key_value_heads = 4;
  config.model.vocab_size = 61;
  BatchShape shape;
  shape.length = 64;
  shape.sequences_per_rank = shape.sequences_per_step = 2;
  const StepBenchmark result{
      .gemm_rate = 1e12, .tokens_per_second = 1000, .step_seconds = 1, .tokens_per_step = 128, .attended = 20};
  cli::StepReport report{.config = config, .shape = shape, .result = result, .device = "d", .peak_flops = 1e9};
  report.mean_document = 40;
  report.baseline_bytes = 5;
  const TokenFlops flops = token_flops(config.model);
  const auto share = [&](double attended) { return 1000 * flops.done(attended) / 1e9; };
  const nlohmann::ordered_json json = cli::as_json(report);
  CHECK(json["mfu_full"] == Approx(share(64)));
  CHECK(json["mfu_causal"] == Approx(share(32)));
  CHECK(json["mfu_done"] == Approx(share(20)));
  CHECK(json["mean_document"] == 40);
  CHECK(json["memory_baseline_bytes"] == 5);
  std::ostringstream out;
  cli::print(out, report);
  CHECK_THAT(out.str(), Contains("random, of 40 tokens on average; a token attends to 20") && Contains("mfu_done"));
  report.peak_flops = 0;  // a CPU's
  CHECK(!cli::as_json(report).contains("mfu_full"));
}

TEST_CASE("decoding that reads weights faster than memory is told to be of a cache") {
  GenerateTimes times{.copy_rate = 12e9, .weight_bytes = 1.2e6, .decode_seconds = 25e-6};
  const auto printed = [&] {
    std::ostringstream out;
    cli::print(out, times);
    return out.str();
  };
  CHECK_THAT(printed(), Contains("12.0 GB/s copied, so 24.0 GB/s read and written"));
  CHECK_THAT(printed(), Contains("48.0 GB/s = 400 %") && Contains("a cache holds this model"));
  CHECK(cli::as_json(times)["weights_from_cache"] == true);
  times.decode_seconds = 55e-6;
  CHECK_THAT(printed(), Contains("= 182 %") && !Contains("cache"));
}

TEST_CASE("a coordinate check without depths says why") {
  CoordinateCheck check;
  check.by_width = {{"logits", std::vector<double>(11)}};
  std::ostringstream out;
  cli::print(out, check);
  CHECK_THAT(out.str(), Contains("not checked: model.mup.base_num_hidden_layers is 0"));
}
