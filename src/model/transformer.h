// A Llama decoder: RMSNorm, rotary attention with grouped queries, SwiGLU, residual stream (Touvron et al. 2023).
// Forward and backward are written out as straight lines of operations. Weights come whole from ShardedParameters, unit
// by unit, and gradients go back to it the same way; everything else this needs lies in planned buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/activations.h"
#include "model/batch_inputs.h"
#include "model/cuda_graph_cache.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

struct TransformerOptions {
  int64_t max_tokens = 0;        // N of the largest micro-batch
  int64_t max_length = 0;        // longest sequence
  int64_t cached_sequences = 0;  // that forward_cached() is given at a time; 0: none
  DType compute = DType::kBF16;
  Keep keep = Keep::kBackward;
  double z_loss = 0;
  CudaGraphs graphs = CudaGraphs::kOff;  // where the device can, and for one rank
};

class Transformer {
 public:
  // Plans its buffers. `parameters` was made from make_param_table(config) and outlives this.
  Transformer(const ModelConfig& config, ShardedParameters& parameters, const TransformerOptions& options,
              MemoryPlan& plan);
  void commit(const Arena& arena, Stream& compute);

  // Adds the losses and counts of `batch` to `sums` (ops.h, StepSum), and its gradients to the parameters' own.
  void forward_backward(Stream& compute, const TokenBatch& batch, Tensor sums);

  // Whether forward_backward has found the way in which it will run from now on, and whether that is by graphs.
  bool settled() const { return !graphs_ || graphs_->settled(); }
  bool replays() const { return graphs_ && graphs_->replays(); }

  // Adds the losses and counts to `sums`; no gradients. Returns the loss of each token, 0 where it has no target; valid
  // until the next call.                                                                                   (N) f32
  Tensor evaluate(Stream& compute, const TokenBatch& batch, Tensor sums);

  // Logits of the given rows of the batch.                                     (rows, V) f32
  void logits(Stream& compute, const TokenBatch& batch, int64_t first_row, Tensor logits);

  // The decoder on new tokens of sequences whose keys and values are kept; appends those of the new tokens. Returns the
  // final norm's output, valid until the next call.                             (N, C)
  Tensor forward_cached(Stream& compute, const TokenBatch& batch, const CachedInputs& cached);
  // logits = hidden weight^T                                                     (S, C) act -> (S, V) f32
  void head(Stream& compute, Tensor hidden, Tensor logits);

  const ModelConfig& config() const { return config_; }
  int64_t max_tokens() const { return options_.max_tokens; }  // of a batch
  int64_t max_length() const { return options_.max_length; }  // of a sequence
  int64_t cached_sequences() const { return options_.cached_sequences; }
  DType compute() const { return options_.compute; }
  const HeadLayout& heads() const { return heads_; }
  Shape workspace_shape() const { return workspace_shape_; }  // f32, that its operations share
  // Sends the reduced gradient of the norm weights, once a step, after its last micro-batch.
  void finish_gradients(Stream& compute);

 private:
  using Weights = std::vector<Tensor>;

  // transformer.cc: forward and backward over the units
  void run_units(Stream& compute, const DeviceBatch& in, Tensor sums);  // forward and backward
  void forward(Stream& compute, const DeviceBatch& in,
               const Activations& a);  // up to the final norm's output, in a.norm
  LinearCrossEntropy head_arguments(const DeviceBatch& in, const Activations& a, Tensor weight, Tensor sums) const;
  void backward_head(Stream& compute, const DeviceBatch& in, const Activations& a, Tensor sums, const Weights& dnorms);
  void backward_embedding(Stream& compute, const DeviceBatch& in, const Activations& a);
  Weights norm_gradients(Stream& compute);

  void attend(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l);

  // layer.cc: one layer
  void rotate_qkv(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l, const LayerWeights& w);
  void layer_interior(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l, const LayerWeights& w);
  void layer_output(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w);
  // `dw`: gradients of matrices are written as `write` says, those of vectors are added to.
  void backward_mlp(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w, const LayerWeights& dw,
                    Write write);
  void backward_attention(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l,
                          const LayerWeights& w, const LayerWeights& dw, Write write);

  ModelConfig config_;
  WeightIndex index_;
  HeadLayout heads_;
  ShardedParameters& parameters_;
  Ops& ops_;
  Device& device_;
  TransformerOptions options_;
  BatchInputs inputs_;
  ActivationPlan activations_;
  std::optional<CudaGraphCache> graphs_;  // absent: none are recorded
  std::vector<int32_t> cu_seqlens_;       // of the latest micro-batch, with room for more documents
  Shape workspace_shape_;
  MemoryPlan::Slot rope_slot_, workspace_slot_;

  Tensor rope_;  // (max_length, D) f32
};

}  // namespace tokamak
