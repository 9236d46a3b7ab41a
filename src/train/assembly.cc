#include "train/assembly.h"

#include "base/error.h"

namespace tokamak {

namespace {

DType dtype_of(Precision precision) { return precision == Precision::kBF16 ? DType::kBF16 : DType::kF32; }

Keep keep_of(const RunConfig& config, bool training) {
  if (!training) return Keep::kNothing;
  return config.activation_checkpoint.mode == RecomputeMode::kFull ? Keep::kLayerInputs : Keep::kBackward;
}

CudaGraphs graphs_of(const RunConfig& config, bool training, const Comm& comm, const Device& device) {
  const CudaGraphs wanted = config.runtime.cuda_graphs;
  if (wanted == CudaGraphs::kOn && comm.size() > 1 && !device.uses_host_memory()) {
    fail(Kind::kConfig, str("runtime.cuda_graphs is on, and ", comm.size(), " ranks train: graphs are for one rank"),
         "runtime.cuda_graphs: auto");
  }
  return training ? wanted : CudaGraphs::kOff;
}

}  // namespace

DType compute_dtype(const PrecisionOptions& precision) { return dtype_of(precision.compute); }
DType reduce_dtype(const PrecisionOptions& precision) { return dtype_of(precision.reduce); }

Assembly::Assembly(const RunConfig& config, Comm& comm, Backend& backend, const AssemblyOptions& options)
    : comm_(comm),
      backend_(backend),
      table_(make_param_table(config.model)),
      parameters_(table_, comm, backend,
                  {.compute = compute_dtype(config.precision),
                   .reduce_dtype = reduce_dtype(config.precision),
                   .gradients = options.training},
                  plan_),
      optimizer_(options.training ? std::optional<AdamWOptimizer>(std::in_place, config.optimizer, parameters_, plan_)
                                  : std::nullopt),
      model_(config.model, parameters_,
             {.max_tokens = options.max_tokens,
              .max_length = options.max_length,
              .cached_sequences = options.cached_sequences,
              .compute = compute_dtype(config.precision),
              .keep = keep_of(config, options.training),
              .z_loss = config.training.z_loss,
              .graphs = graphs_of(config, options.training, comm, *backend.device)},
             plan_) {
  if (options.cached_sequences > 0) {
    cache_.emplace(config.model,
                   KvCacheOptions{.slots = options.cached_sequences,
                                  .capacity = options.max_length,
                                  .compute = compute_dtype(config.precision)},
                   plan_);
  }
  sums_slot_ = plan_.add("step/sums", DType::kF64, Shape{kStepSums});
  control_slot_ = plan_.add("step/control", DType::kF32, Shape{kStepControls});
}

void Assembly::commit() {
  compute_ = backend_.device->make_stream({.name = "compute"});
  arena_ = std::make_unique<Arena>(plan_, *backend_.device);
  parameters_.commit(*arena_);
  if (optimizer_) optimizer_->commit(*arena_);
  model_.commit(*arena_, *compute_);
  if (cache_) cache_->commit(*arena_, *backend_.device);
  sums_ = (*arena_)[sums_slot_];
  control_ = (*arena_)[control_slot_];
}

}  // namespace tokamak
