// The loss on a tokenized data set, as in validation: windows of the model's context in stored order, with document
// masking.
#pragma once

#include "data/manifest.h"
#include "eval/task.h"

namespace tokamak {

class Shards : public EvalTask {
 public:
  // options.path is the data set's directory. Error(kData) if another tokenizer made it.
  Shards(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context);

  int64_t items() const override { return windows_; }
  const std::vector<ScoredSequence>& sequences() const override { return sequences_; }
  std::vector<NamedValue> results(
      std::span<const double> log_likelihoods) const override;  // loss, token_perplexity, bits_per_byte

 private:
  Manifest manifest_;
  int64_t windows_ = 0, tokens_ = 0;
  std::vector<ScoredSequence> sequences_;
};

}  // namespace tokamak
