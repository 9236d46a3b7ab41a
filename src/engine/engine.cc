#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/activation_names.h"

namespace tokamak {

namespace {

DType dtype_of(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return DType::kF32;
    case Precision::kBF16:
      return DType::kBF16;
  }
  TOKAMAK_UNREACHABLE("precision ", static_cast<int>(precision));
}

// Nothing is kept without backward, whatever mode a checkpoint's config has.
KeptLayers kept_of(const EngineOptions& options, const Ops& ops) {
  if (!options.sizes.training) return {};
  return kept_layers(options.activation_checkpoint, options.model, options.sizes.max_tokens, options.sizes.max_length,
                     dtype_of(options.precision.compute), ops.rows_behind_attention());
}

CudaGraphs graphs_of(const EngineOptions& options, const Comm& comm, const Device& device) {
  const CudaGraphs wanted = options.cuda_graphs;
  if (wanted == CudaGraphs::kOn && comm.size() > 1 && !device.uses_host_memory()) {
    fail(Kind::kConfig, str("runtime.cuda_graphs is on, and ", comm.size(), " ranks train: graphs are for one rank"),
         "runtime.cuda_graphs: auto");
  }
  return options.sizes.training ? wanted : CudaGraphs::kOff;
}

}  // namespace

DType compute_dtype(const PrecisionOptions& precision) { return dtype_of(precision.compute); }
DType reduce_dtype(const PrecisionOptions& precision) { return dtype_of(precision.reduce); }

Engine::Engine(const EngineOptions& options, const Mesh& mesh, Backend& backend)
    : mesh_(mesh),
      backend_(backend),
      table_(make_param_table(options.model, options.parallelism.unit)),
      parameters_(table_, mesh, backend,
                  {.compute = compute_dtype(options.precision),
                   .reduce_dtype = reduce_dtype(options.precision),
                   .gradients = options.sizes.training,
                   .policy = options.sizes.training ? sharding_policy(options.parallelism) : ShardingPolicy{}},
                  plan_),
      optimizer_(options.sizes.training ? make_optimizer(options.optimizer, options.seed, parameters_, plan_)
                                        : nullptr),
      averages_(options.sizes.training ? options.averages : std::vector<AverageOptions>(), parameters_, plan_),
      model_(options.model, parameters_,
             {.max_tokens = options.sizes.max_tokens,
              .max_length = options.sizes.max_length,
              .cached_sequences = options.sizes.cached_sequences,
              .compute = compute_dtype(options.precision),
              .passes = options.sizes.training ? Passes::kForwardAndBackward : Passes::kForward,
              .kept = kept_of(options, *backend.ops),
              .z_loss = options.z_loss,
              .graphs = graphs_of(options, mesh.world(), *backend.device)},
             plan_),
      plans_snapshot_(options.sizes.snapshot) {
  if (options.sizes.cached_sequences > 0) {
    const int64_t slots = options.sizes.cached_sequences;
    const int64_t capacity = options.sizes.cached_length > 0 ? options.sizes.cached_length : options.sizes.max_length;
    cache_.emplace(options.model,
                   KvCacheOptions{.slots = slots,
                                  .capacity = capacity,
                                  .max_tokens = std::min(options.sizes.max_tokens, slots * capacity),
                                  .ends = options.sizes.cache_ends,
                                  .compute = compute_dtype(options.precision)},
                   plan_);
  }
  sums_slot_ = plan_.add("step/sums", DType::kF64, Shape{kStepSums});
  control_slot_ = plan_.add("step/control", DType::kF32, Shape{kStepControls});
  unit_sums_slot_ = plan_.add("step/unit sums", DType::kF64, Shape{table_.clip_units(), kStepSums});
  if (options.sizes.training && options.sizes.statistics) statistics_.emplace(parameters_, optimizer_->state(), plan_);
  if (const std::vector<std::string> names = matching_activations(options.model, options.sizes.activations);
      options.sizes.training && !names.empty()) {
    activation_statistics_.emplace(ActivationStatistics::Options{names, options.model.vocab_size}, mesh_.data(),
                                   backend, plan_);
  }
  if (!plans_snapshot_) return;
  for (const StateTensor& part : state()) {
    plan_.add("snapshot/" + part.name, part.tensor.dtype(), part.tensor.shape(), MemoryKind::kPinned, Taken::kLater);
  }
}

void Engine::commit() {
  compute_ = backend_.device->make_stream({.name = "compute"});
  arena_ = std::make_unique<Arena>(plan_, *backend_.device);
  parameters_.commit(*arena_);
  if (optimizer_) optimizer_->commit(*arena_);
  averages_.commit(*arena_, *compute_);
  model_.commit(*arena_, *compute_);
  if (statistics_) statistics_->commit(*arena_);
  if (activation_statistics_) activation_statistics_->commit(*arena_);
  if (cache_) cache_->commit(*arena_, backend_);
  sums_ = (*arena_)[sums_slot_];
  control_ = (*arena_)[control_slot_];
  unit_sums_ = (*arena_)[unit_sums_slot_];
}

std::vector<StateTensor> Engine::state() const {
  std::vector<StateTensor> all = {state_of_all_weights("master", parameters_)};
  all.front().tensor = parameters_.master();
  if (optimizer_) all.insert(all.end(), optimizer_->state().begin(), optimizer_->state().end());
  all.insert(all.end(), averages_.state().begin(), averages_.state().end());
  return all;
}

}  // namespace tokamak
