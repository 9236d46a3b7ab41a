// Text and JSON of the results of `tokamak bench`.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "bench/coordinate_check.h"
#include "bench/generate_benchmark.h"
#include "bench/op_benchmark.h"
#include "bench/step_benchmark.h"
#include "train/run_config.h"

namespace tokamak::cli {

struct StepReport {
  const RunConfig& config;
  const BatchShape& shape;
  const StepBenchmark& result;
  std::string device;
  double peak_flops = 0;  // per second, of all ranks; 0: no vendor states one, so there is no MFU
  int ranks = 1;
  int64_t mean_document = 0;   // tokens; 0: each sequence is one document
  int64_t planned_bytes = 0;   // with baseline_bytes
  int64_t baseline_bytes = 0;  // in use before the plan's memory was taken
  int64_t peak_bytes = 0;
};

void print(std::ostream& out, const StepReport& report);
nlohmann::ordered_json as_json(const StepReport& report);

void print(std::ostream& out, const GenerateTimes& times);
nlohmann::ordered_json as_json(const GenerateTimes& times);

void print(std::ostream& out, const CoordinateCheck& check);
nlohmann::ordered_json as_json(const CoordinateCheck& check);

void print(std::ostream& out, const OpTimes& times);
nlohmann::ordered_json as_json(const OpTimes& times);

}  // namespace tokamak::cli
