// Times a run's step against its GEMMs on the same machine in the same minute. Random tokens, no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/timeline.h"
#include "engine/engine.h"
#include "plan/step_record.h"
#include "train/batch_shape.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

namespace tokamak {

struct StepBenchmark {
  double gemm_rate = 0;          // FLOP/s: FLOPs of all GEMMs of a step over the sum of their times, each run alone
  double tokens_per_second = 0;  // of all ranks
  double step_seconds = 0;       // median
  int64_t tokens_per_step = 0;
  double attended = 0;                                 // tokens that a token attends to, on average (TokenFlops::done)
  std::vector<std::pair<RecordedGemm, double>> gemms;  // with the FLOP/s of each
  Profile profile;                                     // of one step
};

struct StepBenchmarkOptions {
  BatchShape shape;
  int64_t rounds = 3;
  int64_t mean_document = 0;        // RandomBatchOptions::mean_document
  std::vector<RecordedGemm> gemms;  // the step's, from gemms_of()
};

// The run as training plans it, without what only training needs (PlanFor). With kept_bytes: auto, activations leave
// the benchmark its memory, and on a CPU also fill what training needs for its snapshot.
struct PlannedBenchmark {
  PlannedRun run;                   // with `micro_batches` in a step; 0: as configured
  std::vector<RecordedGemm> gemms;  // of a step
  MemoryPlan plan;                  // of the run and of the benchmark
};
PlannedBenchmark plan_benchmark(const RunConfig& config, const GlobalBatch& batch, const Mesh& mesh, Backend& backend,
                                const MemoryShare& memory, int64_t micro_batches = 0);

// Collective. Each round times all GEMMs and then a step, so that both see the same load of other processes. Returns
// the medians over the rounds.
StepBenchmark benchmark_step(Engine& engine, const StepBenchmarkOptions& options);

}  // namespace tokamak
