// The parts of a run that take memory: parameters, optimizer, model and cache. The constructor plans them, and commit()
// takes the memory. Training, benchmarks, generation and plans all run on it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "comm/mesh.h"
#include "infer/kv_cache.h"
#include "model/activation_statistics.h"
#include "model/options.h"
#include "model/transformer.h"
#include "optim/averages.h"
#include "optim/optimizer.h"
#include "tensor/arena.h"
#include "zero/shard_statistics.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

struct EngineSizes {
  int64_t max_tokens = 0;        // of a micro-batch
  int64_t max_length = 0;        // of a sequence
  bool training = true;          // false: weights and forward only
  int64_t cached_sequences = 0;  // sequences in the cache of keys and values; 0: no cache
  int64_t cached_length = 0;     // length of each, at most max_length; 0: max_length
  CacheEnds cache_ends = CacheEnds::kAppended;
  bool snapshot = false;                      // plan host memory for a copy of the state (train/state_slices.h)
  bool statistics = false;                    // plan memory for tensor statistics
  std::vector<std::string> activations = {};  // patterns of activation_names() to plan statistics of
};

struct EngineOptions {
  ModelConfig model;  // vocab_size is known
  OptimizerOptions optimizer;
  std::vector<AverageOptions> averages;  // of the weights, if it trains
  uint64_t seed = 0;                     // of the optimizer's random rounding
  PrecisionOptions precision;
  ParallelismOptions parallelism;  // the mesh has its degrees
  ActivationCheckpointOptions activation_checkpoint;
  double z_loss = 0;
  CudaGraphs cuda_graphs = CudaGraphs::kAuto;
  EngineSizes sizes;
};

class Engine {
 public:
  // The groups of `mesh` and `backend` outlive this. Error(kConfig) if the options contradict each other.
  Engine(const EngineOptions& options, const Mesh& mesh, Backend& backend);
  // Takes the memory. Error(kDevice) if there is not enough.
  void commit();

  const MemoryPlan& plan() const { return plan_; }
  const ParamTable& table() const { return table_; }
  ShardedParameters& parameters() { return parameters_; }
  bool plans_snapshot() const { return plans_snapshot_; }                          // EngineSizes::snapshot
  Optimizer& optimizer() { return *optimizer_; }                                   // if it trains
  Averages& averages() { return averages_; }                                       // none unless it trains
  ShardStatistics* statistics() { return statistics_ ? &*statistics_ : nullptr; }  // if it has memory for them
  // If it has memory for them.
  ActivationStatistics* activation_statistics() { return activation_statistics_ ? &*activation_statistics_ : nullptr; }
  Transformer& model() { return model_; }
  KvCache& cache() { return *cache_; }  // if it has cached sequences
  Backend& backend() { return backend_; }
  const Mesh& mesh() const { return mesh_; }
  Comm& comm() { return mesh_.world(); }  // all ranks
  Stream& compute() { return *compute_; }
  std::vector<StateTensor> state() const;          // "master", then the optimizer's and averages if it trains
  Tensor sums() const { return sums_; }            // (kStepSums) f64
  Tensor control() const { return control_; }      // (kStepControls) f32
  Tensor unit_sums() const { return unit_sums_; }  // (ParamTable::clip_units, kStepSums) f64

 private:
  Mesh mesh_;
  Backend& backend_;
  MemoryPlan plan_;
  ParamTable table_;
  ShardedParameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  Averages averages_;
  std::optional<ShardStatistics> statistics_;
  Transformer model_;
  std::optional<ActivationStatistics> activation_statistics_;
  std::optional<KvCache> cache_;
  MemoryPlan::Slot sums_slot_, control_slot_, unit_sums_slot_;
  bool plans_snapshot_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> compute_;
  Tensor sums_, control_, unit_sums_;
};

DType compute_dtype(const PrecisionOptions& precision);
DType reduce_dtype(const PrecisionOptions& precision);

}  // namespace tokamak
