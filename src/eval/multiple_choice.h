// Multiple-choice questions. The model's answer is the most likely choice. acc: by log-likelihood; acc_norm: by
// log-likelihood over the choice's length in characters.
#pragma once

#include "eval/encoding.h"
#include "eval/questions.h"

namespace tokamak {

enum class LengthNorm { kNo, kYes };  // whether the task has an acc_norm

class MultipleChoice : public EvalTask {
 public:
  MultipleChoice(std::vector<Question> questions, LengthNorm norm, EvalEncoder& encoder);

  int64_t items() const override { return static_cast<int64_t>(questions_.size()); }
  const std::vector<ScoredSequence>& sequences() const override { return sequences_; }
  std::vector<NamedValue> results(std::span<const double> log_likelihoods) const override;

 private:
  std::vector<Question> questions_;
  LengthNorm norm_;
  std::vector<ScoredSequence> sequences_;  // the choices of each question, consecutively
};

}  // namespace tokamak
