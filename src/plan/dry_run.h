// Runs the real code on a device that only plans, as rank 0 of any number of ranks. Yields the memory by name and a
// step's operations and messages.
#pragma once

#include "plan/step_record.h"
#include "train/run_plan.h"

namespace tokamak {

class DryRun {
 public:
  // Plans for runtime.backend; auto means this machine's. Auto keys are chosen to fill `bytes` on each rank
  // (train/run_plan.h). Error(kConfig) if the config contradicts the number of ranks.
  DryRun(const RunConfig& config, const GlobalBatch& batch, int ranks, int64_t bytes = INT64_MAX,
         PlanFor use = PlanFor::kTraining);

  const BatchShape& shape() const { return run_.shape; }
  const MemoryPlan& memory() const { return run_.engine->plan(); }
  const Transformer& model() const { return run_.engine->model(); }
  const Device& device() const { return *backend_.device; }
  const Ops& ops() const { return *backend_.ops; }
  const Mesh& mesh() const { return mesh_.mesh(); }

  StepRecord record() { return record(shape()); }
  StepRecord record(const BatchShape& shape, int64_t mean_document = 0);  // `shape` has the same micro-batch

 private:
  Backend backend_;
  std::unique_ptr<Comm> comm_;
  MeshGroups mesh_;
  PlannedRun run_;
  bool committed_ = false;
};

}  // namespace tokamak
