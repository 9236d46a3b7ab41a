// Continues prompts with continuous batching: a prompt enters when a slot is free and leaves when it is finished.
// Works on token ids; the caller handles text.
//
// The result for a prompt depends on that prompt alone. Its random numbers come from its own stream. On the CPU its
// logits have the same bits for any batch of up to eight prompts (see backend/cpu/gemv.h).
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
  std::vector<int32_t> prompt;  // at least one token, fewer than the cache's capacity
  std::string stream;           // name of its random stream
};

inline constexpr int64_t kPrefillStep = 1024;  // prefill_step of programs: most prompt tokens of a forward pass

// Chooses the next token of each sequence of a forward pass.
using Choose = std::function<std::vector<int32_t>()>;

struct GenerationOptions {
  int64_t max_tokens = 0;    // new tokens per prompt
  int64_t vocab_size = 0;    // ids from here on are never sampled: the model may have more rows than the tokenizer
  int32_t eos = -1;          // ends a text and is not part of it; -1: no such token
  int64_t prefill_step = 0;  // prompt tokens per forward pass; at most the model's max_tokens
  uint64_t seed = 0;
  SamplingOptions sampling;
  std::function<void()> between;  // called before each forward pass; may throw, which ends all texts where they are
  // If several ranks run the same requests: calls `own` on one of them and returns its answer on all. Empty: each rank
  // chooses by itself.
  std::function<std::vector<int32_t>(const Choose& own)> choose;
};

// The time of each phase. Prefill produces the first new token, so neither phase counts that token.
struct GenerationTimes {
  int64_t prompt_tokens = 0;   // prefilled
  double prompt_seconds = 0;   //
  int64_t decoded_tokens = 0;  // new tokens, except the first of each prompt
  double decode_seconds = 0;
};

class Generator {
 public:
  enum class Verdict { kContinue, kStop };
  // A new token of request r, in order; not called for the token that ends it.
  using OnToken = std::function<Verdict(size_t request, int32_t id)>;
  // Request r is finished, with `tokens` new tokens (including the one that ended it).
  using OnFinish = std::function<void(size_t request, Finish finish, int64_t tokens)>;

  // All arguments outlive this. At most cache.slots() prompts run at once.
  Generator(Transformer& model, KvCache& cache, Device& device, Stream& compute);

  GenerationTimes run(const std::vector<GenerationRequest>& requests, const GenerationOptions& options,
                      const OnToken& on_token, const OnFinish& on_finish);

 private:
  struct Active;
  std::span<float> logits_of(const CachedBatch& batch, const GenerationOptions& options);
  std::span<float> prefill(const Active& entry, const GenerationOptions& options);  // logits of the next token (V)
  std::span<float> decode(std::span<const Active> active, const GenerationOptions& options);  //             (S, V)
  // The next token of each entry, by its row of the logits.                                                    (S)
  std::vector<int32_t> choose_tokens(std::span<const Active> entries, std::span<float> logits,
                                     const GenerationOptions& options) const;
  // Appends a token to the entry; returns why the entry is finished, if it is.
  std::optional<Finish> append(Active& entry, int32_t id, const GenerationOptions& options,
                               const OnToken& on_token) const;

  Transformer& model_;
  KvCache& cache_;
  Device& device_;
  Stream& compute_;
  std::vector<float> logits_;
};

}  // namespace tokamak
