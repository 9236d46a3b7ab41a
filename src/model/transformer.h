// A decoder: embedding, layers of the kinds that the config lists (layer_table.h), head. By default a Llama: RMSNorm,
// rotary attention with grouped queries, SwiGLU, residual stream (Touvron et al. 2023). Forward and backward are
// straight-line sequences of operations. ShardedParameters supplies whole weights unit by unit and receives whole
// gradients; all other tensors lie in planned buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/activations.h"
#include "model/batch_inputs.h"
#include "model/cuda_graph_cache.h"
#include "model/flops.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "model/part_pass.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

struct TransformerOptions {
  int64_t max_tokens = 0;        // N of the largest micro-batch
  int64_t max_length = 0;        // longest sequence
  int64_t cached_sequences = 0;  // per call of forward_cached(); 0: none
  DType compute = DType::kBF16;
  Passes passes = Passes::kForwardAndBackward;
  KeptLayers kept;  // for backward, besides the inputs of layers
  double z_loss = 0;
  CudaGraphs graphs = CudaGraphs::kOff;  // needs device support and a single rank
};

// The scores of each target of a micro-batch; 0 where there is none.
struct TokenScores {
  Tensor loss;    // (M) f32: -log p(target)
  Tensor greedy;  // (M) f32: 1 where the target is the likeliest token (LinearCrossEntropy)
};

class Transformer {
 public:
  // Plans its buffers. `parameters` must come from make_param_table(config), and outlives this.
  Transformer(const ModelConfig& config, ShardedParameters& parameters, const TransformerOptions& options,
              MemoryPlan& plan);
  void commit(const Arena& arena, Stream& compute);

  // Adds the losses and counts of `batch` to `sums` (ops.h, StepSum), and accumulates its gradients.
  void forward_backward(Stream& compute, const TokenBatch& batch, Tensor sums);

  // Passes of last micro-batches show their activations to `watcher`, which outlives them; nullptr: to none. Such a
  // pass does not run as a graph.
  void watch(ActivationStatistics* watcher) { watcher_ = watcher; }

  // Whether forward_backward has decided between graphs and eager mode, and whether it chose graphs.
  bool settled() const { return !graphs_ || graphs_->settled(); }
  bool replays() const { return graphs_ && graphs_->replays(); }

  // Adds the losses and counts to `sums`; no gradients. With `cached`, like forward_cached(). The scores are valid
  // until the next call.
  TokenScores evaluate(Stream& compute, const TokenBatch& batch, Tensor sums, const CachedInputs* cached = nullptr);

  // Logits of the given rows of the batch.                                     (rows, V) f32
  void logits(Stream& compute, const TokenBatch& batch, int64_t first_row, Tensor logits);

  // Runs the decoder on new tokens of cached sequences and appends their keys and values. Returns the final norm's
  // output, valid until the next call.                                         (N, C)
  Tensor forward_cached(Stream& compute, const TokenBatch& batch, const CachedInputs& cached);
  // logits = hidden weight^T, capped                                             (S, C) act -> (S, V) f32
  void head(Stream& compute, Tensor hidden, Tensor logits);

  const ModelConfig& config() const { return config_; }
  int64_t max_tokens() const { return options_.max_tokens; }  // per batch
  int64_t max_length() const { return options_.max_length; }  // per sequence
  int64_t cached_sequences() const { return options_.cached_sequences; }
  DType compute() const { return options_.compute; }
  int64_t rows_with_equal_bits() const { return ops_.rows_with_equal_bits(); }
  const KeptLayers& kept() const { return activations_.kept(); }
  const HeadLayout& heads() const { return heads_; }
  const Attended& attended() const { return attended_; }
  Shape workspace_shape() const { return workspace_shape_; }  // f32, shared by its operations
  // Reduces the gradient of the norm weights: once per step, after its last micro-batch.
  void finish_gradients(Stream& compute);

 private:
  using Norms = std::span<const Tensor>;  // of the norms unit

  ActivationStatistics* watcher() const { return parameters_.last_microbatch() ? watcher_ : nullptr; }  // of the pass
  void run_units(Stream& compute, const DeviceBatch& in, Tensor sums);  // forward and backward
  // Runs all layers and the final norm, whose output is in Activations::norm.
  const Activations& forward(Stream& compute, const DeviceBatch& in, ActivationStatistics* watcher = nullptr);
  // The residual stream that enters the first layer; with a norm after the embedding, its input is left in a.norm.
  void embed(Stream& compute, const DeviceBatch& in, const Activations& a, Tensor table, Norms norms);
  void project(Stream& compute, const Gemm& head);  // the head's GEMM and cap
  LinearCrossEntropy head_arguments(const DeviceBatch& in, const Activations& a, Tensor weight, Tensor sums) const;
  void backward_head(Stream& compute, const DeviceBatch& in, const Activations& a, Tensor sums, Norms dnorms);
  void backward_embedding(Stream& compute, const DeviceBatch& in, const Activations& a, Norms norms, Norms dnorms);
  Norms norm_gradients(Stream& compute);
  float embedding_scale() const;
  float final_cap() const { return static_cast<float>(config_.final_logit_softcapping); }

  PassInputs pass_inputs(Stream& compute, const DeviceBatch& in, const Activations& a,
                         ActivationStatistics* watcher = nullptr) const;
  void forward_layer(const PassInputs& in, const Activations& a, int64_t l, LayerWeights weights);
  // Backward of layer l, with its recomputations.
  void backward_layer(const PassInputs& in, const Activations& a, int64_t l, LayerWeights weights);
  PartPass part_pass(const PassInputs& in, PartPass::Mode mode, const Activations& a, int64_t l, size_t part,
                     LayerWeights& weights) const;
  // The buffer for forward()'s DocumentTables of this batch; empty if its attention reads none.
  Tensor tables_of(const DeviceBatch& in) const;

  ModelConfig config_;
  LayerTable layers_;
  Attended attended_;
  WeightIndex index_;
  HeadLayout heads_;
  ShardedParameters& parameters_;
  Ops& ops_;
  Device& device_;
  TransformerOptions options_;
  BatchInputs inputs_;
  ActivationPlan activations_;
  std::vector<int64_t> forward_order_, backward_order_;  // units of a pass (UnitPass)
  std::optional<CudaGraphCache> graphs_;                 // absent: no graphs
  std::vector<int32_t> cu_seqlens_;                      // of the latest micro-batch, padded with empty documents
  Shape workspace_shape_;
  MemoryPlan::Slot rope_slot_, workspace_slot_;
  std::optional<MemoryPlan::Slot> tables_slot_;      // absent: attention reads none
  std::optional<MemoryPlan::Slot> rope_local_slot_;  // absent: no layer has a RoPE of its own

  Tensor rope_, rope_local_;                 // (max_length, D) f32
  ActivationStatistics* watcher_ = nullptr;  // of steps
  Tensor tables_;                            // DocumentTables of the micro-batch in progress
};

}  // namespace tokamak
