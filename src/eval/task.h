// An evaluation task: sequences to score or texts to generate, and the rule that computes metrics from them. Rules and
// names are those of lm-evaluation-harness, so results are comparable to published ones.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "eval/figures.h"
#include "eval/generated_texts.h"
#include "eval/questions.h"
#include "eval/sequence_scores.h"
#include "tokenizer/tokenizer.h"
#include "train/eval_options.h"

namespace tokamak {

struct TextVerdicts {
  EvalFigures figures;
  std::vector<std::pair<std::string, std::vector<double>>> right;  // of each metric: 1 or 0 for each text
};

struct EvalTask {
  int64_t items = 0;  // questions, or texts
  std::vector<ScoredSequence> sequences = {};
  std::function<EvalFigures(std::span<const SequenceScore> scores)> results = {};  // one of each sequence
  // A task has sequences and results, or texts and their judge, which is collective.
  std::optional<TextsToGenerate> texts = {};  // several for each item, if there are more than items
  std::function<TextVerdicts(std::span<const std::string> texts, Comm& comm)> judge = {};
  std::vector<Question> questions = {};  // by item; none of texts
};

struct EncodingOptions {
  int64_t context = 0;   // maximum number of tokens that the model sees
  bool add_bos = false;  // prepend the BOS token to each text
};

// Loads and encodes the task. Error(kData) naming file and line of data that does not match the task's format.
EvalTask make_eval_task(const EvalOptions& options, const Tokenizer& tokenizer, const EncodingOptions& encoding);

}  // namespace tokamak
