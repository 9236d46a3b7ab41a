// Texts generated from fixed prompts during training (sampler.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

struct SampleOptions {
  std::vector<std::string> prompts;
  int64_t interval = 0;
  int64_t tokens = 64;
  double temperature = 0.8;
  double top_p = 0.95;
  int64_t seed = 1;

  template <class Visitor>
  void fields(Visitor& v) {
    v("prompts", prompts,
      "texts to continue, always the same, so that progress shows; up to 8 are generated at once, and their KV cache "
      "is in the memory plan");
    v("interval", interval,
      "steps between samples, at least 1 with prompts; there are always some at the end; their time is excluded from "
      "throughput");
    v("tokens", tokens,
      "new tokens per text, at most; each token needs all weights once, which zero_stage 3 gathers from all ranks");
    v("temperature", temperature, "sampling temperature; 0: always the likeliest token, which often repeats itself");
    v("top_p", top_p, "sample among the fewest tokens that have this probability together; 1: all");
    v("seed", seed, "seed of the sampling; `tokamak generate --seed` repeats the text from that step's checkpoint");
  }
};

}  // namespace tokamak
