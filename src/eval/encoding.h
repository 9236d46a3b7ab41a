// Tokenizes and truncates texts as lm-evaluation-harness's Hugging Face model does.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "eval/task.h"

namespace tokamak {

class EvalEncoder {
 public:
  // `tokenizer` outlives this.
  EvalEncoder(const Tokenizer& tokenizer, const EncodingOptions& options);

  const Tokenizer& tokenizer() const { return tokenizer_; }

  // Encodes context and continuation together. If the context alone has n tokens, the continuation has all tokens after
  // the first n. White space at the end of the context belongs to the continuation. A too long context loses its
  // beginning. Error(kData), beginning with `where`, if the continuation alone does not fit, or either part is empty.
  ScoredSequence pair(std::string_view context, std::string_view continuation, std::string_view where);

  // The prompt of a text with so many new tokens. A too long one loses its beginning. Error(kConfig) if the context has
  // no room for it, Error(kData) if it has no token; both begin with `where`.
  std::vector<int32_t> prompt(std::string_view text, int64_t new_tokens, std::string_view where);

  // The whole text in windows of the model's context, each token once. The first window begins after the BOS token (the
  // EOS token if there is none); the last one has as much context as fits. Empty for a text without tokens.
  std::vector<ScoredSequence> windows(std::string_view text);

 private:
  std::vector<int32_t> encode(std::string_view text);

  const Tokenizer& tokenizer_;
  EncodingOptions options_;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace tokamak
