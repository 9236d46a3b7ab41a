// Which values are logged, how often, and where they go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

struct ActivationOptions {
  int64_t interval = 1000;
  std::vector<std::string> match = {"*"};

  template <class Visitor>
  void fields(Visitor& v) {
    v("interval", interval,
      "steps between statistics, of a step's last micro-batch; also at the last step; 0: none, at no cost");
    v("match", match,
      "patterns of names: embedding, layers.N.attention, layers.N.attention_logits (log-sum-exps), layers.N.mlp, "
      "layers.N.output, norm, logits");
  }
};

struct MetricsOptions {
  int64_t log_interval = 10;
  int64_t tensor_statistics = 1000;
  ActivationOptions activation_statistics;
  bool tensorboard = false;
  std::string prometheus;
  std::string trace;

  template <class Visitor>
  void fields(Visitor& v) {
    v("log_interval", log_interval, "steps between lines on the console and in metrics.jsonl");
    v("tensor_statistics", tensor_statistics,
      "steps between statistics of weights, gradients, updates and moments; each takes some 250 kB for 32 layers in "
      "tensors.jsonl; 0: none, at no cost");
    v("activation_statistics", activation_statistics,
      "statistics of activations, and log-sum-exps of attention's logits, in tensors.jsonl");
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
