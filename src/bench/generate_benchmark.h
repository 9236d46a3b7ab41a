// How fast a model generates, beside what bounds it on the same device in the same minute: decoding reads every weight
// once for each token (or each batch of them), so a plain copy's rate bounds it; a prompt is a matter of GEMMs.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace tokamak {

struct GenerateBenchmarkOptions {
  int64_t sequences = 1;  // decoded together
  int64_t prompt = 512;   // tokens of each
  int64_t tokens = 64;    // decoded in a round, of each
  int64_t rounds = 5;
};

struct GenerateTimes {
  GenerateBenchmarkOptions options;
  double copy_rate = 0;         // bytes copied per second: each counts once, though it is read and written
  double weight_bytes = 0;      // that a call for one token reads: all matrices but a lookup, in the compute dtype
  double decode_seconds = 0;    // of one call, which gives each sequence a token
  double prompt_rate = 0;       // tokens per second, one sequence at a time
  double prompt_gemm_rate = 0;  // of the GEMMs of such a prompt, each run alone: tokens per second

  double decode_rate() const { return static_cast<double>(options.sequences) / decode_seconds; }
  // The weights read per second over the bytes copied per second.
  double share_of_copy() const { return weight_bytes / decode_seconds / copy_rate; }
  // The same, were each copied byte counted as read and written.
  double share_of_traffic() const { return share_of_copy() / 2; }
  // Whether a cache holds weights: they are read faster than memory is. (The cache's size would not do: others use it too.)
  bool reads_cache() const { return share_of_traffic() > 1; }
};

// The engine has a cache of options.sequences x (prompt + tokens) and weights. Each round times the copy, the
// prompts, their GEMMs and the decoding in turn; the results are those of the round whose share of the copy is the
// median.
GenerateTimes benchmark_generate(Engine& engine, const GenerateBenchmarkOptions& options);

}  // namespace tokamak
