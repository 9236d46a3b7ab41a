// A list of tasks, read once and taken as often as asked: by `tokamak eval`, or inside a training run (training.evals).
#pragma once

#include <functional>

#include "eval/task.h"

namespace tokamak {

struct EvalResult {
  EvalOptions options;
  double seconds = 0;
  std::vector<std::vector<double>> samples;  // for each item, log p of each of its sequences
  std::vector<NamedValue> values;
};

class Evaluations {
 public:
  // Reads and encodes them all. Error(kData) as make_eval_task.
  Evaluations(const std::vector<EvalOptions>& tasks, const Tokenizer& tokenizer, const EncodingOptions& encoding);

  // In the order of the tasks. Collective; the same on every rank. The engine takes sequences of the encoding's
  // context. `between` is called between micro-batches, on all ranks alike; it may throw to end the run of tasks.
  std::vector<EvalResult> run(Engine& engine, const std::function<void()>& between) const;

 private:
  struct Task {
    EvalOptions options;
    std::unique_ptr<EvalTask> task;
  };
  std::vector<Task> tasks_;
};

// The results of all tasks under "<task>/<metric>".
std::vector<NamedValue> flatten(const std::vector<EvalResult>& results);

}  // namespace tokamak
