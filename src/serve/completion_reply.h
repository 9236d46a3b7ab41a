// Completions as JSON, whole or as events of a stream: OpenAI's objects. A choice's logprobs have `token_ids`, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/completion.h"

namespace tokamak {

struct ReplyHead {
  std::string id;     // "cmpl-..."
  std::string model;  // as the reply names it
  int64_t created = 0;
  uint64_t seed = 0;  // of the choices
  bool has_logprobs = false;
  bool includes_usage = false;  // in a stream
};

class CompletionReply {
 public:
  CompletionReply(const Tokenizer& tokenizer, ReplyHead head, int64_t prompt_tokens);

  void name_model(std::string name) { head_.model = std::move(name); }

  // All pieces of a completion come here, in order. Returns the event, to be sent as it is.
  std::string event(const TextPiece& piece);
  std::string last_events() const;  // the usage, if it is included, and [DONE]

  void add(TextPiece piece);
  std::string whole() const;  // JSON of all pieces

 private:
  const Tokenizer& tokenizer_;
  ReplyHead head_;
  int64_t prompt_tokens_, new_tokens_ = 0;
  std::vector<TextPiece> choices_;  // all pieces of each as one
};

std::string event_of(const std::string& json);  // "data: ...\n\n"
std::string error_json(const RequestError& error);

// The name of a token in logprobs: the text that it adds inside of a text, a special token's piece, or
// "bytes:\xE2\x82" if it is no whole text.
std::string token_name(const Tokenizer& tokenizer, int32_t id);

}  // namespace tokamak
