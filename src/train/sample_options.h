// Texts that the model makes of fixed prompts while it is trained (sampler.h).
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
      "texts to continue, always the same ones, so that one sees the model learn; into metrics.jsonl, TensorBoard, the log "
      "and the report; up to 8 at once, whose keys and values are in the memory plan");
    v("interval", interval,
      "steps between samples, at least 1 with prompts; there are always some at the end; their time is logged separately "
      "and excluded from throughput");
    v("tokens", tokens,
      "new tokens of each text at most; the text ends at data.sequence_length, too. Each token needs all weights once: with "
      "zero_stage 3 on many nodes that is a gather of the whole model a token");
    v("temperature", temperature, "of the choice of each token; 0: always the likeliest, which often repeats itself");
    v("top_p", top_p, "choose among the fewest tokens with this probability together; 1: all");
    v("seed", seed,
      "of the choices, the same ones each time; `tokamak generate --seed` with the same options makes the same text of "
      "that step's checkpoint");
  }
};

}  // namespace tokamak
