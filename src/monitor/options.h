// What is logged, how often, and where it goes.
#pragma once

#include <cstdint>

#include "base/fields.h"

namespace tokamak {

struct MetricsOptions {
  int64_t log_interval = 10;
  bool jsonl = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("jsonl", jsonl, "write output_dir/metrics.jsonl");
  }
};

}  // namespace tokamak
