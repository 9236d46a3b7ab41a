// The KV cache: keys and values of active sequences, for every layer, and the small buffers of a call of
// forward_cached. A sequence lives in a slot. Only the host knows how many tokens a slot holds; it sends the lengths to
// the device with each call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/batch_inputs.h"
#include "model/model_config.h"
#include "tensor/arena.h"

namespace tokamak {

struct KvCacheOptions {
  int64_t slots = 1;       // sequences at once
  int64_t capacity = 0;    // positions per slot, P
  int64_t max_tokens = 0;  // per call
  DType compute = DType::kBF16;
};

// New tokens of several sequences, on the host. May be reused once the model's call returns.
struct CachedBatch {
  std::span<const int32_t> tokens;      // (N) ids, N > 0
  std::span<const int32_t> cu_seqlens;  // (S + 1): sequence s has tokens [cu[s], cu[s+1]), at least one
  std::span<const int32_t> slots;       // (S), distinct
  // (S): length of each sequence once its whole prompt is in, for chunked prefill; empty: its length after this call.
  std::span<const int32_t> prompt_lengths;
};

class KvCache {
 public:
  KvCache(const ModelConfig& config, const KvCacheOptions& options, MemoryPlan& plan);
  void commit(const Arena& arena, Backend& backend);

  int64_t slots() const { return options_.slots; }
  int64_t capacity() const { return options_.capacity; }
  Tensor layer(int64_t l) const { return layers_[static_cast<size_t>(l)]; }  // (slots, 2 Hkv, P, D) act
  int64_t length(int64_t slot) const { return lengths_[static_cast<size_t>(slot)]; }
  void clear(int64_t slot) { lengths_[static_cast<size_t>(slot)] = 0; }

  // Checks that the batch fits and enqueues its upload. The tokens count as cached after `grow`.
  CachedInputs upload(Stream& compute, const CachedBatch& batch);
  void grow(const CachedBatch& batch);

  // Positions of the new tokens, after the cached ones.                                                      (N)
  std::vector<int32_t> positions(const CachedBatch& batch) const;

  // The rows of each sequence's last new token, in the latest uploaded batch.     (N, C) -> (S, C) act
  Tensor last_tokens(Stream& compute, const CachedBatch& batch, Tensor hidden);
  Tensor logits(int64_t sequences) const { return logits_.rows(0, sequences); }  // (S, V) f32

 private:
  Tensor dynamic_rope(Stream& compute, const CachedBatch& batch);

  ModelConfig config_;
  KvCacheOptions options_;
  std::vector<MemoryPlan::Slot> layer_slots_;
  std::optional<MemoryPlan::Slot> rope_slot_;  // only if the angles depend on the length
  MemoryPlan::Slot slots_slot_, cached_slot_, last_rows_slot_, last_hidden_slot_, logits_slot_;

  Backend* backend_ = nullptr;
  std::vector<Tensor> layers_;
  Tensor slots_, cached_, last_rows_, last_hidden_, logits_;
  Tensor rope_;                   // (max_tokens, D) f32
  std::vector<int64_t> lengths_;  // by slot
};

}  // namespace tokamak
