// Continues prompts, several at a time: a prompt enters as soon as a place of the batch is free, and leaves when it is
// finished. Knows token ids; text is the caller's.
//
// What a prompt becomes depends on that prompt alone: its draws come from a random stream of its own, and on the CPU no
// bit of its logits depends on the others (up to eight prompts at a time, see backend/cpu/gemv.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "infer/kv_cache.h"
#include "infer/sampling.h"
#include "model/transformer.h"

namespace tokamak {

enum class Finish { kEos, kStop, kLength };

struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token, fewer than the cache has positions
  std::string stream;           // names its random numbers
};

struct GenerationOptions {
  int64_t max_tokens = 0;    // new ones, of each prompt
  int64_t vocab_size = 0;    // ids from here on stand for nothing: the model may have more rows than the tokenizer
  int32_t eos = -1;          // ends a text, and is no part of it; -1: nothing does
  int64_t prefill_step = 0;  // tokens of a prompt that are taken at once; the model's max_tokens at most
  uint64_t seed = 0;
  SamplingOptions sampling;
};

// What the time went to. A prompt's last token gives the first new one, so that one counts to neither.
struct GenerationTimes {
  int64_t prompt_tokens = 0;   // taken in
  double prompt_seconds = 0;   //
  int64_t decoded_tokens = 0;  // by a call for single tokens
  double decode_seconds = 0;
};

class Generator {
 public:
  enum class Verdict { kContinue, kStop };
  // A new token of request r, not the one that ends it; called in the order of a request's tokens.
  using OnToken = std::function<Verdict(size_t request, int32_t id)>;
  // Request r is finished, with `tokens` new tokens (with the one that ended it).
  using OnFinish = std::function<void(size_t request, Finish finish, int64_t tokens)>;

  // All outlive this; the cache's slots are the places of the batch.
  Generator(Transformer& model, KvCache& cache, Device& device, Stream& compute);

  GenerationTimes run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                      const OnToken& on_token, const OnFinish& on_finish);

 private:
  struct Active;
  std::span<float> logits_of(const CachedBatch& batch);
  std::span<float> prefill(const Active& entry, int64_t step);  // logits of what comes next    (V)
  std::span<float> decode(const std::vector<Active>& active);   //                              (S, V)
  // Appends a token to the entry; how that ended it, if it did.
  std::optional<Finish> choose_token(Active& entry, std::span<float> logits, const GenerationOptions& options,
                                     const OnToken& on_token) const;

  Transformer& model_;
  KvCache& cache_;
  Device& device_;
  Stream& compute_;
  std::vector<float> logits_;
};

}  // namespace tokamak
