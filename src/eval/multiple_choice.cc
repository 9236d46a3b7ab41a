// Multiple-choice questions: accuracy and its standard error.
#include <algorithm>
#include <cmath>

#include "eval/python_text.h"
#include "eval/task_kinds.h"

namespace tokamak {

namespace {

// Index of the largest score; the first of equal ones.
size_t best(std::span<const double> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// The mean and its standard error: the sample standard deviation over sqrt(n).
void add_accuracy(const std::string& name, int64_t right, int64_t asked, std::vector<NamedValue>& out) {
  const auto n = double(asked);
  const double mean = double(right) / n;
  out.push_back({name, mean});
  if (asked > 1) out.push_back({name + "_stderr", std::sqrt(mean * (1 - mean) / (n - 1))});
}

}  // namespace

EvalTask multiple_choice_task(std::vector<Question> questions, LengthNorm norm, EvalEncoder& encoder) {
  EvalTask task{.items = std::ssize(questions), .sequences = {}, .results = {}};
  for (int64_t item = 0; item < task.items; ++item) {
    for (const Choice& choice : questions[item].choices) {
      task.sequences.push_back(encoder.pair(choice.context, choice.continuation, questions[item].where));
      task.sequences.back().item = item;
    }
  }
  task.results = [questions = std::move(questions), norm](std::span<const double> log_likelihoods) {
    int64_t right = 0, right_by_length = 0;
    size_t at = 0;
    for (const Question& question : questions) {
      std::vector<double> scores, scores_by_length;
      for (const Choice& choice : question.choices) {
        scores.push_back(log_likelihoods[at++]);
        scores_by_length.push_back(scores.back() / double(python_len(choice.text)));
      }
      right += best(scores) == question.answer ? 1 : 0;
      right_by_length += best(scores_by_length) == question.answer ? 1 : 0;
    }
    std::vector<NamedValue> out;
    add_accuracy("acc", right, std::ssize(questions), out);
    if (norm == LengthNorm::kYes) add_accuracy("acc_norm", right_by_length, std::ssize(questions), out);
    return out;
  };
  return task;
}

}  // namespace tokamak
