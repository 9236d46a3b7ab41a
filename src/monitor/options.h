// Which values are logged, how often, and where they go.
#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"

namespace tokamak {

struct MetricsOptions {
  int64_t log_interval = 10;
  int64_t tensor_statistics = 1000;
  bool tensorboard = false;
  std::string prometheus;
  std::string trace;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("tensor_statistics", tensor_statistics,
      "steps between statistics of weights, gradients and updates; each takes some 150 kB for 32 layers in tensors.jsonl; "
      "0: none, at no cost");
    v("tensorboard", tensorboard,
      "write output_dir/tensorboard for `tensorboard --logdir`: values, events, samples and the config");
    v("prometheus", prometheus,
      "file DIRECTORY/NAME.prom with the newest values, for the textfile collector of the node exporter; empty: none");
    v("trace", trace,
      "steps to trace, as 10-12 or 10, into output_dir/trace-10-12.json for ui.perfetto.dev; they run without CUDA graphs; "
      "empty: none");
  }
};

}  // namespace tokamak
