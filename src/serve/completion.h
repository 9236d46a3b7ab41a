// The texts of one request while they are made. The engine's thread fills it, and the connection's thread takes the
// pieces. A piece has whole characters and no part of a stop string; a token comes with its first visible character.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "infer/batcher.h"
#include "serve/completion_request.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

struct PieceToken {
  int32_t id = -1;
  int64_t offset = 0;                // of its first character in the choice's text
  std::optional<Logprobs> logprobs;  // absent for the first token of a prompt
};

struct TextPiece {
  int64_t choice = 0;
  std::string text;
  std::vector<PieceToken> tokens;  // if the request wants log probabilities
  std::optional<Finish> finish;    // in the last piece of a choice
  int64_t new_tokens = 0;          // of the whole choice, in its last piece
};

struct PromptEncoding {
  const Tokenizer* tokenizer = nullptr;
  bool add_bos = false;
  int64_t context = 0;  // most tokens of a prompt and its text
};

class Completion {
 public:
  static constexpr int64_t kMostWaiting = 4096;    // pieces that a slow client may leave
  static constexpr int64_t kMostValues = 1 << 20;  // log probabilities in a reply

  // Throws RequestError for a prompt that has unknown ids or does not fit, and for a reply that may become too large.
  Completion(const CompletionRequest& request, const PromptEncoding& source, uint64_t seed);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  int64_t choices() const;  // in the order of prompts, the n texts of each together
  int64_t prompt_tokens() const { return prompt_tokens_; }

  // For the engine's thread. `over` is called there, before the last piece can be taken. After it, that thread does not
  // use this object.
  TextRequest request_of(int64_t choice);
  TextReceiver& receiver(int64_t choice);
  void when_over(std::function<void()> over) { over_ = std::move(over); }
  void begin(int64_t step) { step_ = step; }  // before its first text is made
  void fail(const RequestError& error);

  // For the connection's thread. Waits for a piece; nothing after `seconds`, or if all were taken. Throws what fail()
  // was given.
  std::optional<TextPiece> next(double seconds);
  bool all_taken();
  int64_t step() const { return step_; }  // of the weights, once there is a piece

 private:
  class Choice;
  // False: the client takes too little, and has failed.
  bool push(TextPiece piece);

  std::deque<Choice> choices_;
  int64_t prompt_tokens_ = 0, step_ = -1;
  int64_t going_ = 0;  // choices without their last piece; of the engine's thread
  std::function<void()> over_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<TextPiece> pieces_;
  int64_t left_ = 0;  // choices whose last piece was not taken
  std::optional<RequestError> failure_;
};

}  // namespace tokamak
