// Where micro-batches come to on the device: two buffers in turn, written on a stream of their own, so that a batch
// travels while the one before it is computed on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/device.h"

namespace tokamak {

// A micro-batch on the host: N = B T tokens. Free again when it has been given to the model.
struct TokenBatch {
  std::span<const int32_t> tokens;      // (N) ids
  std::span<const int32_t> targets;     // (N) ids, -1: does not count; empty where only logits are wanted
  std::span<const int32_t> positions;   // (N) position of each token for the rotary embedding
  std::span<const int32_t> cu_seqlens;  // (S + 1) boundaries between which attention stays
};

// Sequences whose keys and values are kept (infer/kv_cache.h), on the device: what attention has to know of them.
struct CachedInputs {
  std::vector<Tensor> layers;  // (slots, 2 Hkv, P, D) act
  Tensor slots, cached;        // (S) i32
  int64_t max_new = 0;
  int64_t max_cached = 0;  // 0: nothing is cached of any of them
  Tensor rope;             // (N, D) f32: angles of the tokens, in their order; empty: the model's own, by position
};

// A micro-batch on the device.
struct DeviceBatch {
  Tensor tokens, targets, positions, cu_seqlens;  // i32
  const CachedInputs* cached = nullptr;           // none in training
  int64_t count() const { return tokens.count(); }
};

class BatchInputs {
 public:
  BatchInputs(int64_t max_tokens, MemoryPlan& plan);
  void commit(const Arena& arena, Device& device);

  // Enqueues the copies; `compute` goes on when they are there. A batch stays until the second upload after it, which
  // waits for what `compute` was given up to the first.
  DeviceBatch upload(Stream& compute, const TokenBatch& batch);

 private:
  static constexpr int kBuffers = 2;
  struct Slots {
    MemoryPlan::Slot tokens, targets, positions, cu_seqlens;
  };
  struct Buffer {
    DeviceBatch whole;  // for the largest batch
    std::unique_ptr<Event> arrived, left;
  };

  Device* device_ = nullptr;
  std::unique_ptr<Stream> copies_;
  Slots slots_[kBuffers];
  Buffer buffers_[kBuffers];
  int at_ = 0;  // of the latest batch
};

}  // namespace tokamak
