// Measures a tokenizer's encoder on two texts, in the processor time of each thread. Each round has new encoders:
//   cold   the first text
//   fresh  then the second text, which the caches have not seen
//   warm   then the second text again
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

struct TokenizerBenchmarkOptions {
  std::vector<std::string_view> first, second;  // documents of the two texts
  int64_t rounds = 5;
  int64_t threads = 1;  // each encodes all documents
};

struct TokenizerTimes {
  struct Pass {
    std::string_view name;
    int64_t bytes = 0, ids = 0;  // of a thread
    double seconds = 0;          // of the slowest thread in the best round
    double rate(int64_t threads) const { return double(bytes * threads) / seconds; }
  };
  std::array<Pass, 3> passes;
};

TokenizerTimes benchmark_tokenizer(const Tokenizer& tokenizer, const TokenizerBenchmarkOptions& options);

// The documents of a text, which NUL bytes separate.
std::vector<std::string_view> documents_of(std::string_view text);

}  // namespace tokamak
