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

int64_t Evaluations::longest_generated() const {
  int64_t longest = 0;
  for (const auto& [options, task] : tasks_) longest = std::max(longest, task.texts ? task.texts->longest() : 0);
  return longest;
}

std::vector<EvalResult> Evaluations::run(Engine& engine, const std::function<void()>& between) const {
  std::vector<EvalResult> results;
  for (const auto& [options, task] : tasks_) {
    const Stopwatch watch;
    EvalResult result{
        .options = options, .samples = {}, .texts = {}, .right = {}, .questions = task.questions, .figures = {}};
    result.samples.resize(static_cast<size_t>(task.items));
    if (task.texts) {
      result.texts = generate_texts(engine, *task.texts, between);
      const TextVerdicts verdicts = task.judge(result.texts, engine.comm());
      result.figures = verdicts.figures;
      result.right = verdicts.right;
    } else {
      const std::vector<SequenceScore> scores = score_sequences(engine, task.sequences, between);
      result.figures = task.results(scores);
      for (size_t i = 0; i < scores.size(); ++i) result.samples[task.sequences[i].item].push_back(scores[i]);
    }
    result.seconds = watch.seconds();
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
