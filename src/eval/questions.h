// Multiple-choice questions from the JSON lines of the published data sets, put into words as lm-evaluation-harness
// does (its tasks hellaswag, arc_easy / arc_challenge, mmlu, piqa, winogrande; version 0.4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/eval_options.h"

namespace tokamak {

struct Choice {
  std::string context;       // what the model is given
  std::string continuation;  // what it is asked for, with the space before it
  std::string text;          // the choice as the data set has it: acc_norm divides by its length
};

struct Question {
  std::vector<Choice> choices;
  size_t answer = 0;
  std::string where;  // file:line
};

// Error(kData) naming file, line and member where a line is not such a question.
std::vector<Question> read_questions(const EvalOptions& options);

}  // namespace tokamak
