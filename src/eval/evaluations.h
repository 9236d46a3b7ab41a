// A list of tasks, loaded once and evaluated any number of times: by `tokamak eval`, or during training
// (training.evals).
#pragma once

#include <functional>
#include <utility>

#include "eval/task.h"

namespace tokamak {

struct EvalResult {
  EvalOptions options;
  double seconds = 0;
  std::vector<std::vector<SequenceScore>> samples;  // per item, of each of its sequences
  std::vector<std::string> texts;                   // of a task that generates them, and their verdicts
  std::vector<std::pair<std::string, std::vector<double>>> right;
  std::span<const Question> questions;  // of the Evaluations, which outlive this; none of texts
  EvalFigures figures;
};

class Evaluations {
 public:
  // Loads and encodes all tasks. Throws Error(kData) where make_eval_task does. The tokenizer
  // outlives this if a task generates texts.
  Evaluations(const std::vector<EvalOptions>& tasks, const Tokenizer& tokenizer, const EncodingOptions& encoding);

  // The length that a cache needs for those tasks whose sequences may have common beginnings, and for those that
  // generate texts; 0: there is none.
  int64_t longest_shared() const;
  int64_t longest_generated() const;

  // Results in task order. Collective; every rank gets the same results. The engine must support sequences of the
  // encoding's context. Calls `between` between micro-batches, on all ranks; it may throw to end the evaluation.
  std::vector<EvalResult> run(Engine& engine, const std::function<void()>& between) const;

 private:
  std::vector<std::pair<EvalOptions, EvalTask>> tasks_;
};

// The results of all tasks under "<task>/<metric>".
std::vector<NamedValue> flatten(const std::vector<EvalResult>& results);

}  // namespace tokamak
