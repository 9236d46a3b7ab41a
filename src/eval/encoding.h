// From texts to the tokens that a model is asked about, as lm-evaluation-harness's Hugging Face model cuts them.
#pragma once

#include <string_view>
#include <vector>

#include "eval/task.h"

namespace tokamak {

class EvalEncoder {
 public:
  // `tokenizer` outlives this.
  EvalEncoder(const Tokenizer& tokenizer, const EncodingOptions& options);

  // The continuation's tokens are those of the whole text past as many as the context alone has. White space at the end
  // of the context counts as the continuation's, and a context that is too long loses its beginning.
  // Error(kData), beginning with `where`, if the continuation alone is longer than that or has no token.
  ScoredSequence pair(std::string_view context, std::string_view continuation, std::string_view where);

  // The whole text in windows of the model's context, each token once: the first window begins after the BOS token
  // (the EOS token where there is none); the last sees as much of the text as fits. Empty for a text without tokens.
  std::vector<ScoredSequence> windows(std::string_view text);

 private:
  std::vector<int32_t> encode(std::string_view text);

  const Tokenizer& tokenizer_;
  EncodingOptions options_;
  Encoder encoder_;
};

}  // namespace tokamak
