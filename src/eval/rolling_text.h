// Perplexity of whole texts, by the harness's loglikelihood_rolling: each token is predicted once, from at most one
// model context.
#pragma once

#include "eval/encoding.h"

namespace tokamak {

class RollingText : public EvalTask {
 public:
  RollingText(std::span<const std::string> texts, EvalEncoder& encoder);

  int64_t items() const override { return texts_; }
  const std::vector<ScoredSequence>& sequences() const override { return sequences_; }
  // word_perplexity, byte_perplexity, bits_per_byte, token_perplexity
  std::vector<NamedValue> results(std::span<const double> log_likelihoods) const override;

 private:
  int64_t texts_ = 0, words_ = 0, bytes_ = 0, tokens_ = 0;
  std::vector<ScoredSequence> sequences_;
};

}  // namespace tokamak
