// The results of an evaluation: a table for people, one JSON object for programs.
#pragma once

#include <string>
#include <vector>

#include "eval/evaluations.h"

namespace tokamak::cli {

struct EvalReport {
  std::string weights;  // as given: a checkpoint's directory, or a model's
  std::string tokenizer;
  std::string dtype;
  int64_t context = 0;
  bool add_bos = false;
  int64_t ranks = 1;
  std::vector<EvalResult> results;
};

std::string eval_table(const EvalReport& report);
std::string eval_json(const EvalReport& report);
// A line of JSON for each item: task, item, log_likelihoods of its sequences.
std::string eval_samples(const std::vector<EvalResult>& results);

}  // namespace tokamak::cli
