// The KV cache: keys and values of active sequences, for every layer. forward_cached() runs the decoder on new tokens,
// both prefill and decode. A sequence lives in a slot. Only the host knows how many tokens a slot holds; it sends the
// lengths to the device with each call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/batch_inputs.h"
#include "model/transformer.h"
#include "tensor/arena.h"

namespace tokamak {

// Whether a sequence may lose tokens at its end. Then no layer holds a ring: keys that come back into the window would
// have been overwritten.
enum class CacheEnds { kAppended, kCutOff };

struct KvCacheOptions {
  int64_t slots = 1;       // sequences at once
  int64_t capacity = 0;    // positions per slot, P
  int64_t max_tokens = 0;  // per call
  CacheEnds ends = CacheEnds::kAppended;
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
  // R is P, or with a window what the window and the new tokens of a call need (CacheEnds).
  Tensor layer(int64_t l) const { return layers_[l]; }  // (slots, 2 Hkv, R, D) act
  CacheEnds ends() const { return options_.ends; }
  int64_t length(int64_t slot) const { return lengths_[slot]; }
  void cut(int64_t slot, int64_t length);  // to its first `length` tokens
  void clear(int64_t slot) { lengths_[slot] = 0; }

  // Checks that the batch fits and enqueues its upload. grow() then adds its tokens to the slots' lengths.
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
  std::optional<MemoryPlan::Slot> rope_slot_;  // set only if rope_scaling is dynamic
  MemoryPlan::Slot slots_slot_, cached_slot_, last_rows_slot_, last_hidden_slot_, logits_slot_;

  Backend* backend_ = nullptr;
  std::vector<Tensor> layers_;
  Tensor slots_, cached_, last_rows_, last_hidden_, logits_;
  Tensor rope_;                   // (max_tokens, D) f32
  std::vector<int64_t> lengths_;  // by slot
};

// Sees the logits of tokens [first_row, first_row + rows) of a batch, which are valid until it returns.   (rows, V) f32
using LogitRows = std::function<void(int64_t first_row, Tensor logits)>;

// Runs the new tokens of each sequence, any number of them, and appends their keys and values to the cache. With
// rope_scaling dynamic, they are rotated by the frequencies for the sequence's current length (for a prompt: the
// prompt's). Cached keys keep their rotation, as in transformers. Returns the logits of each sequence's last token, in
// the cache's own buffer, valid until its next use. Before that it shows `see` the logits of all tokens, some rows at a
// time.                                                                            (S, V) f32
Tensor forward_cached(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache,
                      const LogitRows& see = {});

// The same, and the scores of targets that rows of the batch predict (TokenBatch).            M targets: (M), (M) f32
struct CachedTargets {
  std::span<const int32_t> rows, targets;  // (M)
};
TokenScores evaluate_cached(Transformer& model, Stream& compute, const CachedBatch& batch, const CachedTargets& targets,
                            Tensor sums, KvCache& cache);

}  // namespace tokamak
