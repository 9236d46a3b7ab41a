// Predictions of tokamak plan, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "plan/reliability.h"
#include "plan/search.h"

namespace tokamak::cli {

struct PlanReport {
  const RunConfig& config;
  const Machine& machine;
  int ranks = 1;
  Choices choices;
  bool as_configured = false;
  bool explain = false;
  const Prediction& best() const;  // the fastest; where nothing fits, what takes least
};

void print(std::ostream& out, const PlanReport& report);
nlohmann::ordered_json as_json(const PlanReport& report);

}  // namespace tokamak::cli
