// An evaluation task: sequences to score, and the rule that computes metrics from their scores. Rules and names are
// those of lm-evaluation-harness, so results are comparable to published ones.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/figures.h"
#include "eval/questions.h"
#include "eval/sequence_scores.h"
#include "tokenizer/tokenizer.h"
#include "train/eval_options.h"

namespace tokamak {

struct EvalTask {
  int64_t items = 0;  // questions, or texts
  std::vector<ScoredSequence> sequences = {};
  std::function<EvalFigures(std::span<const SequenceScore> scores)> results = {};  // one of each sequence
  std::vector<Question> questions = {};                                            // by item; none of texts
};

struct EncodingOptions {
  int64_t context = 0;   // maximum number of tokens that the model sees
  bool add_bos = false;  // prepend the BOS token to each text
};

// Loads and encodes the task. Error(kData) naming file and line of data that does not match the task's format.
EvalTask make_eval_task(const EvalOptions& options, const Tokenizer& tokenizer, const EncodingOptions& encoding);

}  // namespace tokamak
