// What is logged, how often, and where it goes.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace tokamak {

struct MetricsOptions {
  int64_t log_interval = 10;
  bool jsonl = true;
  std::string trace;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("jsonl", jsonl, "write output_dir/metrics.jsonl");
    v("trace", trace,
      "steps to trace, as 10-12 or 10, into output_dir/trace-10-12.json for ui.perfetto.dev: what each stream of the "
      "first 8 ranks did when; these steps run without CUDA graphs; empty: none");
  }
};

}  // namespace tokamak
