// Multiple-choice questions from the JSON lines of the published data sets, with the prompts of lm-evaluation-harness
// (its tasks hellaswag, arc_easy / arc_challenge, mmlu, piqa, winogrande; version 0.4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/eval_options.h"

namespace tokamak {

struct Choice {
  std::string context;       // the prompt
  std::string continuation;  // the scored text, with the space before it
  std::string text;          // the choice as in the data set: acc_norm divides by its length
};

struct Question {
  std::vector<Choice> choices;
  size_t answer = 0;
  std::string where;  // file:line
};

// Error(kData) naming file, line and member if a line is not such a question.
std::vector<Question> read_questions(const EvalOptions& options);

}  // namespace tokamak
