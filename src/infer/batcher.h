// Continuous batching: texts come and go while others run. A text enters when a slot is free, and its prompt is
// prefilled in chunks. It leaves when it is finished or cancelled. Works on token ids; the caller handles text.
//
// A text depends on its own request alone. Its random numbers come from its own stream. Logits may depend on the size
// of a batch; a decode pass has no more rows than the backend keeps equal (Ops::rows_with_equal_bits).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/rng.h"
#include "infer/kv_cache.h"
#include "infer/logprobs.h"
#include "infer/sampling.h"
#include "model/transformer.h"

namespace tokamak {

enum class Finish { kEos, kStop, kLength };

struct TextRequest {
  std::vector<int32_t> prompt;  // at least one token, fewer than the cache's capacity
  RandomStream random{0, ""};
  int64_t max_tokens = 0;  // new tokens; 0: only the prompt is computed
  int32_t eos = -1;        // ends the text and is not part of it; -1: no such token
  SamplingOptions sampling;
  bool wants_logprobs = false;         // whether each new token has Logprobs
  bool wants_prompt_logprobs = false;  // whether each prompt token but the first has them
  int64_t likeliest = 0;               // in these, how many of the likeliest tokens
};

// Receives a text. Its methods are called by step(), and must not call the batcher.
class TextReceiver {
 public:
  enum class Verdict { kContinue, kStop };

  virtual ~TextReceiver() = default;
  // Prompt token 1, 2, ..., if these are wanted.
  virtual void prompt_token(const Logprobs&) {}
  // A new token, in order. `logprobs`: nullptr if not wanted. EOS comes here only with them, and then ends the text.
  virtual Verdict token(int32_t id, const Logprobs* logprobs) = 0;
  // The text is finished, with `tokens` new tokens (including the one that ended it).
  virtual void finish(Finish finish, int64_t tokens) = 0;
};

// Chooses the next token of each sequence of a forward pass.
using Choose = std::function<std::vector<int32_t>()>;

struct BatcherOptions {
  int64_t vocab_size = 0;         // ids from here on are never sampled: the model may have more rows than the tokenizer
  int64_t prefill_step = 0;       // prompt tokens per forward pass; at most the model's max_tokens
  int64_t prefill_budget = 0;     // prompt tokens of a step, rounded up to a forward pass; 0: all that have a slot
  std::function<void()> between;  // called before each forward pass; may throw
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

class Batcher {
 public:
  // All arguments outlive this. At most cache.slots() texts run at once.
  Batcher(Transformer& model, KvCache& cache, Device& device, Stream& compute, BatcherOptions options);

  // Queues a text; returns its number. `receiver` outlives the text.
  int64_t add(TextRequest request, TextReceiver& receiver);
  // Drops a text, whose slot is free at once. Does nothing if it is finished.
  void cancel(int64_t text);
  void cancel_all();

  // Prefills what may enter, and decodes one token of each running text. Returns whether there is more to do. Throws
  // what `between` throws, and Error(kNumerics) for logits that are not finite; cancel_all() must then follow.
  bool step();

  int64_t waiting() const { return std::ssize(waiting_); }                        // texts without a slot
  int64_t running() const { return std::ssize(running_) + (entering_ ? 1 : 0); }  // texts with a slot
  const GenerationTimes& times() const { return times_; }

 private:
  struct Text {
    int64_t number;
    TextRequest request;  // the prompt grows by the new tokens
    TextReceiver* receiver;
    int32_t slot = -1;
    int64_t prefilled = 0;  // prompt tokens in the cache
    int64_t made = 0;       // new tokens
  };

  void prefill();
  std::span<const float> prefill_chunk(Text& text);  // logits of the token after the chunk                      (V)
  void decode(std::span<Text> texts);
  std::span<const float> to_host(Tensor logits);
  std::span<const float> logits_of(const CachedBatch& batch, const LogitRows& see = {});  //                  (S, V)
  void deliver_prompt(const Text& text, int64_t first_row, Tensor logits);
  // Chooses a token for each text by its row of the logits, and drops the texts that it finishes. Moves the others to
  // `running_`.
  void advance(std::span<Text> texts, std::span<const float> logits);
  int32_t sample(const Text& text, std::span<const float> logits);
  std::optional<Finish> append(Text& text, int32_t id, std::span<const float> logits);
  void finish(Text& text, Finish finish);

  Transformer& model_;
  KvCache& cache_;
  Device& device_;
  Stream& compute_;
  BatcherOptions options_;
  GenerationTimes times_;

  int64_t added_ = 0;
  std::deque<Text> waiting_;
  std::optional<Text> entering_;  // whose prompt is not all in the cache
  std::vector<Text> running_;
  std::vector<int32_t> free_slots_;  // the last is used first
  std::vector<float> logits_, penalised_;
};

}  // namespace tokamak
