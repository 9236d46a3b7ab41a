// A task of evaluation: sequences to score, and the rule that computes metrics from their log-likelihoods. Rules and
// names are those of lm-evaluation-harness (zero-shot), so that results can be laid beside published ones.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/log_likelihood.h"
#include "monitor/record.h"
#include "tokenizer/tokenizer.h"
#include "train/eval_options.h"

namespace tokamak {

class EvalTask {
 public:
  virtual ~EvalTask() = default;
  virtual int64_t items() const = 0;  // questions, or texts
  virtual const std::vector<ScoredSequence>& sequences() const = 0;
  virtual std::vector<NamedValue> results(std::span<const double> log_likelihoods) const = 0;
};

struct EncodingOptions {
  int64_t context = 0;   // tokens that the model sees at most
  bool add_bos = false;  // the BOS token before each text
};

// Reads and encodes it. Error(kData) naming file and line of what is not as the data of this task have it.
std::unique_ptr<EvalTask> make_eval_task(const EvalOptions& options, const Tokenizer& tokenizer,
                                         const EncodingOptions& encoding);

}  // namespace tokamak
