#include "eval/multiple_choice.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "eval/python_text.h"

namespace tokamak {

namespace {

// Index of the largest score; the first of equal ones.
size_t best(std::span<const double> scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// The mean and its standard error: the sample standard deviation over sqrt(n).
void add_accuracy(const std::string& name, int64_t right, int64_t asked, std::vector<NamedValue>& out) {
  const auto n = static_cast<double>(asked);
  const double mean = static_cast<double>(right) / n;
  out.push_back({name, mean});
  if (asked > 1) out.push_back({name + "_stderr", std::sqrt(mean * (1 - mean) / (n - 1))});
}

}  // namespace

MultipleChoice::MultipleChoice(std::vector<Question> questions, LengthNorm norm, EvalEncoder& encoder)
    : questions_(std::move(questions)), norm_(norm) {
  for (size_t item = 0; item < questions_.size(); ++item) {
    for (const Choice& choice : questions_[item].choices) {
      sequences_.push_back(encoder.pair(choice.context, choice.continuation, questions_[item].where));
      sequences_.back().item = static_cast<int64_t>(item);
    }
  }
}

std::vector<NamedValue> MultipleChoice::results(std::span<const double> log_likelihoods) const {
  TOKAMAK_CHECK(log_likelihoods.size() == sequences_.size(), "one log-likelihood for each sequence");
  int64_t right = 0, right_by_length = 0;
  size_t at = 0;
  for (const Question& question : questions_) {
    std::vector<double> scores, scores_by_length;
    for (const Choice& choice : question.choices) {
      scores.push_back(log_likelihoods[at++]);
      scores_by_length.push_back(scores.back() / static_cast<double>(python_len(choice.text)));
    }
    right += best(scores) == question.answer ? 1 : 0;
    right_by_length += best(scores_by_length) == question.answer ? 1 : 0;
  }
  std::vector<NamedValue> out;
  add_accuracy("acc", right, items(), out);
  if (norm_ == LengthNorm::kYes) add_accuracy("acc_norm", right_by_length, items(), out);
  return out;
}

}  // namespace tokamak
