// The output of `tokamak data prepare` for people: log lines, and the report as text and as a page.
#pragma once

#include <string>

#include "base/clock.h"
#include "data/pipeline/explain.h"
#include "data/pipeline/prepare.h"

namespace tokamak::cli {

// A line every few seconds and at the end of each step.
class PrepareLog {
 public:
  void at(const PrepareProgress& progress);

 private:
  std::string step_;
  bool is_over_ = false;  // its last line is written
  Stopwatch of_step_, since_;
};

std::string report_text(const PrepareReport& report);
std::string report_page(const PrepareReport& report, const std::string& config, const std::string& program);
std::string explanation_text(const Explanation& explanation);

}  // namespace tokamak::cli
