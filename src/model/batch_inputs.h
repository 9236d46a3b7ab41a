// Double-buffered upload of micro-batches: copies run on their own stream, so a batch is copied while the previous one
// is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/device.h"

namespace tokamak {

// A micro-batch on the host: N = B T tokens. The caller may overwrite its arrays once the model's call returns.
struct TokenBatch {
  std::span<const int32_t> tokens;      // (N) ids
  std::span<const int32_t> targets;     // (N) ids, -1: ignored in the loss; empty if only logits are wanted
  std::span<const int32_t> positions;   // (N) position of each token for the rotary embedding
  std::span<const int32_t> cu_seqlens;  // (S + 1) document boundaries, which attention does not cross
  // (M), M <= the largest N: target i is predicted by row rows[i], and a row may have several. Empty: row i predicts
  // target i. Only for Transformer::evaluate().
  std::span<const int32_t> rows = {};
};

// The KV cache (infer/kv_cache.h) on the device, as attention needs it.
struct CachedInputs {
  std::vector<Tensor> layers;  // (slots, 2 Hkv, R, D) act
  Tensor slots, cached;        // (S) i32, as in CachedSequences (ops.h)
  int64_t max_new = 0;
  int64_t max_cached = 0;  // 0: nothing is cached for any sequence
  int64_t max_length = 0;  // of cached and new tokens of a sequence
  Tensor rope;             // (N, D) f32: angles per token; empty: the model's table, by position
};

// A micro-batch on the device.
struct DeviceBatch {
  Tensor tokens, targets, positions, cu_seqlens, rows;  // i32
  const CachedInputs* cached = nullptr;                 // null in training
  int64_t count() const { return tokens.count(); }
};

class BatchInputs {
 public:
  BatchInputs(int64_t max_tokens, MemoryPlan& plan);
  void commit(const Arena& arena, Device& device);

  // Enqueues the copies and makes `compute` wait for them. A batch stays valid until the second upload after it, whose
  // copies overwrite it. They first wait for the work on `compute` that uses the batch.
  DeviceBatch upload(Stream& compute, const TokenBatch& batch);

 private:
  static constexpr int kBuffers = 2;
  struct Slots {
    MemoryPlan::Slot tokens, targets, positions, cu_seqlens, rows;
  };
  struct Buffer {
    DeviceBatch whole;  // sized for the largest batch
    std::unique_ptr<Event> arrived, left;
  };

  Device* device_ = nullptr;
  std::unique_ptr<Stream> copies_;
  Slots slots_[kBuffers];
  Buffer buffers_[kBuffers];
  int at_ = 0;  // buffer of the latest batch
};

}  // namespace tokamak
