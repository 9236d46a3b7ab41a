// What is logged, how often, and where it goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

struct MetricsOptions {
  int64_t log_interval = 10;
  int64_t tensor_statistics = 1000;
  bool jsonl = true;
  bool tensorboard = false;
  std::string prometheus;
  std::string trace;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("tensor_statistics", tensor_statistics,
      "steps between statistics of each weight matrix, its gradient (mean over the step's tokens, before clipping) and its "
      "update, and at the last step: root mean square, extremes, what is not finite, magnitudes by powers of two; more "
      "often shows sooner which layer goes wrong and makes files longer: a record of 32 layers has some 150 kB in "
      "tensors.jsonl, so 1000 leaves 15 MB after 100,000 steps; 0: none, at no cost");
    v("jsonl", jsonl, "write output_dir/metrics.jsonl, and tensors.jsonl with the statistics of tensors");
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
