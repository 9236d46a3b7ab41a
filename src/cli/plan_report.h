// Predictions of tokamak plan, for people and as JSON.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "plan/auto_choice.h"
#include "plan/reliability.h"
#include "plan/search.h"

namespace tokamak::cli {

struct PlanReport {
  const RunConfig config;  // before the choice
  const Machine& machine;
  int ranks = 1;
  Choices choices;
  Candidates candidates;     // with --as-configured and auto keys
  int64_t stated_batch = 0;  // training.global_batch_tokens of the file; `config` has one that the ranks can share
  bool as_configured = false;
  bool explain = false;
  int64_t raised_batch() const;    // 0: the config has the file's batch
  const Prediction& best() const;  // the fastest; if nothing fits, the smallest
  int ranks_per_node() const { return std::min(ranks, machine.gpus_per_node); }
};

// Prints the candidates of the auto keys, and the time that keeping each tensor saves.
void explain(std::ostream& out, const RunConfig& config, const Machine& machine, const Candidates& all);

void print(std::ostream& out, const PlanReport& report);
nlohmann::ordered_json as_json(const PlanReport& report);

nlohmann::ordered_json machine_json(const Machine& machine);  // as read_machine (plan/hardware.h) reads it

}  // namespace tokamak::cli
