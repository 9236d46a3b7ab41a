// What is logged, how often, and where it goes.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace tokamak {

struct MetricsOptions {
  int64_t log_interval = 10;
  bool jsonl = true;
  bool tensorboard = false;
  std::string prometheus;
  std::string trace;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("jsonl", jsonl, "write output_dir/metrics.jsonl");
    v("tensorboard", tensorboard,
      "write output_dir/tensorboard for `tensorboard --logdir`: values as scalars, events, samples and the config as "
      "text");
    v("prometheus", prometheus,
      "file for the textfile collector of Prometheus's node exporter, which reads DIRECTORY/*.prom: the newest values, "
      "replaced at once with each record; empty: none");
    v("trace", trace,
      "steps to trace, as 10-12 or 10, into output_dir/trace-10-12.json for ui.perfetto.dev: what each stream of the "
      "first 8 ranks did when; these steps run without CUDA graphs; empty: none");
  }
};

}  // namespace tokamak
