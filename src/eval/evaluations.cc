#include "eval/evaluations.h"

#include <algorithm>

#include "base/clock.h"

namespace tokamak {

Evaluations::Evaluations(const std::vector<EvalOptions>& tasks, const Tokenizer& tokenizer,
                         const EncodingOptions& encoding) {
  for (const EvalOptions& options : tasks) {
    tasks_.emplace_back(options, make_eval_task(options, tokenizer, encoding));
  }
}

int64_t Evaluations::longest_shared() const {
  int64_t longest = 0;
  for (const auto& [options, task] : tasks_) {
    if (options.task == EvalKind::kText || options.task == EvalKind::kShards) continue;
    for (const ScoredSequence& sequence : task.sequences) longest = std::max(longest, std::ssize(sequence.tokens) - 1);
  }
  return longest;
}

std::vector<EvalResult> Evaluations::run(Engine& engine, const std::function<void()>& between) const {
  std::vector<EvalResult> results;
  for (const auto& [options, task] : tasks_) {
    const Stopwatch watch;
    const std::vector<SequenceScore> scores = score_sequences(engine, task.sequences, between);
    EvalResult result{.options = options,
                      .seconds = watch.seconds(),
                      .samples = {},
                      .questions = task.questions,
                      .figures = task.results(scores)};
    result.samples.resize(task.items);
    for (size_t i = 0; i < scores.size(); ++i) result.samples[task.sequences[i].item].push_back(scores[i]);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<NamedValue> flatten(const std::vector<EvalResult>& results) {
  std::vector<NamedValue> out;
  for (const EvalResult& result : results) {
    for (const NamedValue& one : result.figures.values)
      out.push_back({result.options.display_name() + "/" + one.name, one.value});
  }
  return out;
}

}  // namespace tokamak
