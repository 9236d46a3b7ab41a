// Measures generation against its bounds on the same device in the same minute. A plain copy's rate bounds decoding,
// which reads every weight once per token (or batch of tokens). GEMMs bound prompts.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace tokamak {

struct GenerateBenchmarkOptions {
  int64_t sequences = 1;  // decoded together
  int64_t prompt = 512;   // tokens of each prompt
  int64_t tokens = 64;    // decoded of each sequence in a round
  int64_t rounds = 5;
};

struct GenerateTimes {
  GenerateBenchmarkOptions options;
  double copy_rate = 0;         // bytes copied per second; a byte counts once, though it is read and written
  double weight_bytes = 0;      // read by a call for one token: all matrices but a lookup, in the compute dtype
  double decode_seconds = 0;    // of one call, which gives each sequence a token
  double prompt_rate = 0;       // tokens per second, one sequence at a time
  double prompt_gemm_rate = 0;  // tokens per second if a prompt were its GEMMs only, each run alone

  double decode_rate() const { return double(options.sequences) / decode_seconds; }
  // Weights read per second over bytes copied per second.
  double share_of_copy() const { return weight_bytes / decode_seconds / copy_rate; }
  // As share_of_copy(), with each copied byte counted twice: as read and as written.
  double share_of_traffic() const { return share_of_copy() / 2; }
  // True if a cache holds weights: they are read faster than memory. The cache's size cannot decide it: others use it,
  // too.
  bool reads_cache() const { return share_of_traffic() > 1; }
};

// The engine has weights and a cache of options.sequences x (prompt + tokens). Each round times the copy, the prompts,
// their GEMMs and the decoding in turn. Returns the round whose share of the copy is the median.
GenerateTimes benchmark_generate(Engine& engine, const GenerateBenchmarkOptions& options);

}  // namespace tokamak
