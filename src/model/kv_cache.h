// The keys and values of sequences that are being continued, for every layer, and the small buffers of a call of
// Transformer::forward_cached. A sequence lives in a slot; how many of its tokens are there is known to the host alone,
// which sends it to the device with each call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/model_config.h"
#include "tensor/arena.h"

namespace tokamak {

struct KvCacheOptions {
  int64_t slots = 1;     // sequences at once
  int64_t capacity = 0;  // positions of each, P
  DType compute = DType::kBF16;
};

// Tokens that several sequences have more, on the host. Free again when it has been given to the model.
struct CachedBatch {
  std::span<const int32_t> tokens;      // (N) ids, N > 0
  std::span<const int32_t> cu_seqlens;  // (S + 1): sequence s has tokens [cu[s], cu[s+1]), at least one
  std::span<const int32_t> slots;       // (S), no two the same
  // (S): tokens that each sequence will have when its prompt is in, where that comes in pieces; empty: after this call.
  std::span<const int32_t> prompt_lengths;
};

// A call's sequences on the device.
struct DeviceCachedBatch {
  std::vector<Tensor> layers;  // (slots, 2 Hkv, P, D) act
  Tensor slots, cached;        // (S) i32
  Tensor last_rows;            // (S) i32: the last new token of each sequence
  int64_t max_new = 0;
  int64_t max_cached = 0;  // 0: nothing is cached of any of them
};

class KvCache {
 public:
  KvCache(const ModelConfig& config, const KvCacheOptions& options, MemoryPlan& plan);
  void commit(const Arena& arena, Device& device);

  int64_t slots() const { return options_.slots; }
  int64_t capacity() const { return options_.capacity; }
  Tensor layer(int64_t l) const { return layers_[static_cast<size_t>(l)]; }  // (slots, 2 Hkv, P, D) act
  int64_t length(int64_t slot) const { return lengths_[static_cast<size_t>(slot)]; }
  void clear(int64_t slot) { lengths_[static_cast<size_t>(slot)] = 0; }

  // Checks that the batch fits, and enqueues what the device has to know of it. The tokens count as cached after
  // `grow`.
  DeviceCachedBatch upload(Stream& compute, const CachedBatch& batch);
  void grow(const CachedBatch& batch);

  // The positions of new tokens, which follow those that are cached.                                        (N)
  std::vector<int32_t> positions(const CachedBatch& batch) const;

  Tensor last_hidden(int64_t sequences) const { return last_hidden_.rows(0, sequences); }  // (S, C) act
  Tensor logits(int64_t sequences) const { return logits_.rows(0, sequences); }            // (S, V) f32

 private:
  KvCacheOptions options_;
  std::vector<MemoryPlan::Slot> layer_slots_;
  MemoryPlan::Slot slots_slot_, cached_slot_, last_rows_slot_, last_hidden_slot_, logits_slot_;

  Device* device_ = nullptr;
  std::vector<Tensor> layers_;
  Tensor slots_, cached_, last_rows_, last_hidden_, logits_;
  std::vector<int64_t> lengths_;  // by slot
};

}  // namespace tokamak
