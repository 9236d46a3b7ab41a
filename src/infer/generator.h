// Continues prompts that are all known at the start: a loop over Batcher. Works on token ids; the caller handles text.
//
// The result for a prompt depends on that prompt alone (infer/batcher.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "infer/batcher.h"

namespace tokamak {

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token, fewer than the cache's capacity
  std::string stream;           // name of its random stream
};

inline constexpr int64_t kPrefillStep = 1024;  // prefill_step of programs: most prompt tokens of a forward pass

struct GenerationOptions {
  int64_t max_tokens = 0;    // new tokens per prompt
  int64_t vocab_size = 0;    // as in BatcherOptions
  int32_t eos = -1;          // ends a text and is not part of it; -1: no such token
  int64_t prefill_step = 0;  // prompt tokens per forward pass; at most the model's max_tokens
  uint64_t seed = 0;
  SamplingOptions sampling;
  std::function<void()> between;  // called before each forward pass; may throw, which ends all texts where they are
  std::function<std::vector<int32_t>(const Choose& own)> choose;  // as in BatcherOptions
};

class Generator {
 public:
  using Verdict = TextReceiver::Verdict;
  // A new token of request r, in order; not called for the token that ends it.
  using OnToken = std::function<Verdict(size_t request, int32_t id)>;
  // Request r is finished, with `tokens` new tokens (including the one that ended it).
  using OnFinish = std::function<void(size_t request, Finish finish, int64_t tokens)>;

  // All arguments outlive this. At most cache.slots() prompts run at once.
  Generator(Transformer& model, KvCache& cache, Device& device, Stream& compute)
      : model_(model), cache_(cache), device_(device), compute_(compute) {}

  GenerationTimes run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                      const OnToken& on_token, const OnFinish& on_finish);

 private:
  Transformer& model_;
  KvCache& cache_;
  Device& device_;
  Stream& compute_;
};

}  // namespace tokamak
