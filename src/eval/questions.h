// Questions from the JSON lines of a data set, worded by the form of their task, each after its solved examples
// ("shots").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/task_form.h"

namespace tokamak {

struct Choice {
  std::string context;       // the prompt behind the question's `before`
  std::string continuation;  // the scored text, with the space before it
  std::string text;          // the choice as in the data set: acc_norm divides by its length
};

struct Question {
  std::string before;  // the description and the examples
  std::vector<Choice> choices;
  size_t answer = 0;
  std::string program_before, program_after;  // of a generated program, else empty
  std::string part;                           // of a task of several, else empty
  std::string where;                          // file:line
};

// Examples and their order are those of the harness for the same file and seed. Error(kData) naming file, line and
// member if a line is not such a question. Error(kConfig) if examples are wanted, but there is no file of them, or too
// few are in it.
std::vector<Question> read_questions(const EvalOptions& options, const TaskForm& form);

}  // namespace tokamak
