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

DryRun::DryRun(const RunConfig& config, const GlobalBatch& batch, int ranks, int64_t bytes)
    : backend_(planned_backend(config.runtime)),
      comm_(make_plan_comm(ranks, *backend_.device)),
      run_(plan_run(config, batch, *comm_, backend_, bytes)) {}

StepRecord DryRun::record(const BatchShape& shape) {
  run_.engine->commit();
  return record_step(*run_.engine, shape);
}

}  // namespace tokamak
