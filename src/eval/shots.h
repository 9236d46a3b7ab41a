// Chooses the solved examples of a question, as lm-evaluation-harness 0.4.13 does. Its generator goes on from question
// to question, so the examples of a question depend on how many come before it.
#pragma once

#include <vector>

#include "eval/python_random.h"
#include "eval/task_form.h"
#include "formats/json.h"

namespace tokamak {

class Shots {
 public:
  // `pool`: the records of `path` to choose from; they outlive this. Error(kConfig) if they are too few.
  Shots(const EvalOptions& options, ShotRule rule, std::vector<JsonValue> pool);

  // The examples of the next question, in order.
  std::vector<JsonValue> next(const JsonValue& question);

 private:
  std::vector<JsonValue> drawn(const std::vector<JsonValue>& from, size_t count);

  size_t count_;
  ShotRule rule_;
  std::vector<JsonValue> pool_;
  PythonRandom random_;
};

}  // namespace tokamak
