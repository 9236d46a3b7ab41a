// Training runs of a model small enough to run hundreds of them, whose ranks are threads; and what a run leaves behind,
// as one value to compare.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "checkpoint/manifest.h"
#include "comm/collective_error.h"
#include "support/temp_dir.h"
#include "train/trainer.h"

namespace tokamak {

// States its speed, so that a start does not measure it.
class ToyDevice : public CpuDevice {
 public:
  double peak_flops(DType) const override { return 1e12; }
  using CpuDevice::finish_streams;
};

inline Backend toy_backend() { return {std::make_unique<ToyDevice>(), std::make_unique<CpuOps>()}; }

// Data sets to train and validate on, and the directories of runs; removed with everything in it.
class ToyPlace {
 public:
  ToyPlace();

  // 6 steps of 12 sequences of 16 tokens, in f32. Each of `ranks` ranks has one micro-batch a step. Saved at the end.
  RunConfig config(const std::string& name, int ranks = 1) const;
  std::string run(const std::string& name) const { return dir_.file("runs/" + name); }
  std::string checkpoint(const std::string& name, int64_t step) const;
  std::string file(const std::string& name) const { return dir_.file(name); }

 private:
  TempDir dir_;
};

struct ToyRunOptions {
  int64_t stop_at_step = 0;
  int64_t trace_step = 0;
  std::function<std::vector<NamedValue>(Engine&, const std::function<void()>&)> evals =
      [](Engine&, const std::function<void()>&) { return std::vector<NamedValue>(); };
  std::function<Backend()> backend = toy_backend;
  std::function<std::string(const RunConfig&)> config_text = [](const RunConfig& config) {
    return "seed: " + str(config.run.seed);
  };
  std::function<std::vector<std::string>(const TrainingPoint&, const std::string&)> check_changes;
  RunProgress* progress = nullptr;  // of a run on one rank
  int readers = 1;                  // consecutive ranks that read the same samples
  std::function<RunEnd(World&, Trainer&)> run = [](World&, Trainer& trainer) { return trainer.run(); };
  std::function<std::vector<Straggler>()> stragglers;
};

// Trains on `ranks` threads, with a Sampler if the config has prompts. Throws the error of the first rank that failed.
RunEnd train(int ranks, const RunConfig& config, const ToyRunOptions& options = {});

// Bytes that a run on one rank plans for memory whose names begin with `name`.
int64_t planned_bytes_of(const RunConfig& config, const std::string& name, PlanFor use = PlanFor::kTraining);

// The SharedError that ends a run.
SharedError error_of(int ranks, const RunConfig& config, const ToyRunOptions& options = {});

// All that a checkpoint holds except for the names of its writer.
struct ToyState {
  RunState run;
  std::string data;
  std::map<std::pair<std::string, std::string>, std::vector<float>> tensors;  // by kind and name

  bool operator==(const ToyState&) const = default;  // to the bit, since no value is NaN or -0 by chance
};
ToyState saved_state(const std::string& checkpoint);

// {step: value} of a key in metrics.jsonl, without steps that a later start has replaced.
std::map<int64_t, double> records(const std::string& run, const std::string& key = "loss/last");
double worst_difference(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b);  // relative
std::vector<int64_t> steps_of(const ToyPlace& place, const std::string& name);                    // of its checkpoints
std::vector<std::string> events(const std::string& run);
MetricRecord last_event(const std::string& run, const std::string& name);

}  // namespace tokamak
