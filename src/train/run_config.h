// The complete configuration of a run: one section per module that has options. config/ reads and
// prints it.
#pragma once

#include "backend/options.h"
#include "checkpoint/options.h"
#include "data/options.h"
#include "model/model_config.h"
#include "model/options.h"
#include "monitor/options.h"
#include "optim/options.h"
#include "resilience/options.h"
#include "train/options.h"
#include "train/stage_options.h"
#include "zero/options.h"

namespace tokamak {

struct RunConfig {
  RunOptions run;
  ModelConfig model;
  DataOptions data;
  TrainingOptions training;
  std::vector<StageOptions> stages;
  OptimizerOptions optimizer;
  ScheduleOptions lr_scheduler;
  std::vector<AverageOptions> averages;
  ParallelismOptions parallelism;
  PrecisionOptions precision;
  ActivationCheckpointOptions activation_checkpoint;
  CheckpointOptions checkpoint;
  MetricsOptions metrics;
  ResilienceOptions resilience;
  RuntimeOptions runtime;

  template <class Visitor>
  void fields(Visitor& v) {
    v("run", run, "name, directory and seed of the run");
    v("model", model, "the decoder, in the terms of Hugging Face's config.json; required");
    v("data", data, "data sets to train on; required");
    v("training", training, "length, batch and validation; required");
    v("stages", stages,
      "parts of the run, one after the other, each with its own data, lengths, batch, learning rate or RoPE; empty: "
      "the run has one");
    v("optimizer", optimizer, "optimizer and weight decay");
    v("lr_scheduler", lr_scheduler, "the learning rate over the run");
    v("averages", averages,
      "averages of the weights, in host memory, for validation and export beside the last weights");
    v("parallelism", parallelism, "how the state is spread over the ranks");
    v("precision", precision, "number formats");
    v("activation_checkpoint", activation_checkpoint, "memory against recomputation");
    v("checkpoint", checkpoint, "saving and resuming");
    v("metrics", metrics, "values that are logged, and where");
    v("resilience", resilience, "limits before the run aborts, and the watchdog that ends it when it hangs");
    v("runtime", runtime, "backend and threads");
  }
};

}  // namespace tokamak
