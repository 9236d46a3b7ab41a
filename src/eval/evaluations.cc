#include "eval/evaluations.h"

#include "base/clock.h"

namespace tokamak {

Evaluations::Evaluations(const std::vector<EvalOptions>& tasks, const Tokenizer& tokenizer,
                         const EncodingOptions& encoding) {
  for (const EvalOptions& options : tasks) {
    tasks_.push_back({options, make_eval_task(options, tokenizer, encoding)});
  }
}

std::vector<EvalResult> Evaluations::run(Assembly& assembly) const {
  std::vector<EvalResult> results;
  for (const Task& task : tasks_) {
    const Stopwatch watch;
    const std::vector<double> scores = log_likelihoods(assembly, task.task->sequences());
    results.push_back({task.options, task.task->items(), watch.seconds(), task.task->figures(scores)});
  }
  return results;
}

std::vector<Figure> flatten(const std::vector<EvalResult>& results) {
  std::vector<Figure> out;
  for (const EvalResult& result : results) {
    for (const Figure& figure : result.figures)
      out.push_back({result.options.called() + "/" + figure.name, figure.value});
  }
  return out;
}

}  // namespace tokamak
