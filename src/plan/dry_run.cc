#include "plan/dry_run.h"

#include "comm/plan_comm.h"

namespace tokamak {

namespace {

Backend planned_backend(const RuntimeOptions& options) {
  const bool cuda =
      options.backend == BackendKind::kCuda || (options.backend == BackendKind::kAuto && cuda_presence().devices > 0);
  return cuda ? plan_cuda_backend(options) : plan_cpu_backend();
}

}  // namespace

DryRun::DryRun(const RunConfig& config, const GlobalBatch& batch, int ranks, int64_t bytes, PlanFor use)
    : backend_(planned_backend(config.runtime)),
      comm_(make_plan_comm(ranks, *backend_.device)),
      mesh_(*comm_, replicas_of(config.parallelism, ranks), ranks / batch.data_ranks()),
      run_(plan_run(config, batch, mesh_.mesh(), backend_, use, bytes)) {}

StepRecord DryRun::record(const BatchShape& shape, int64_t mean_document) {
  if (!committed_) run_.engine->commit();
  committed_ = true;
  return record_step(*run_.engine, shape, {.mean_document = mean_document});
}

}  // namespace tokamak
