#include "infer/kv_cache.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/rope_table.h"

namespace tokamak {

namespace {

// The oldest key that a call needs is window - 1 positions before its first new token.
int64_t rows_of(const ModelConfig& config, int64_t l, const KvCacheOptions& options) {
  if (!config.slides(l) || options.ends == CacheEnds::kCutOff) return options.capacity;
  const int64_t needed = config.sliding_window - 1 + options.max_tokens;
  return std::min(options.capacity, (needed + kCacheTile - 1) / kCacheTile * kCacheTile);
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, const KvCacheOptions& options, MemoryPlan& plan)
    : config_(config), options_(options), lengths_(static_cast<size_t>(options.slots), 0) {
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const Shape layer{options.slots, 2 * config.kv_heads(), rows_of(config, l, options), config.head_size()};
    layer_slots_.push_back(plan.add(str("key-value cache/layer.", l), options.compute, layer));
  }
  const Shape sequences{options.slots};
  slots_slot_ = plan.add("generation/slots", DType::kI32, sequences);
  cached_slot_ = plan.add("generation/cached", DType::kI32, sequences);
  last_rows_slot_ = plan.add("generation/last rows", DType::kI32, sequences);
  last_hidden_slot_ = plan.add("generation/last hidden", options.compute, Shape{options.slots, config.hidden_size});
  if (config.rope_scaling.rope_type == RopeType::kDynamic) {
    rope_slot_ = plan.add("generation/rope table", DType::kF32, Shape{options.max_tokens, config.head_size()});
  }
  logits_slot_ = plan.add("generation/logits", DType::kF32, Shape{options.slots, config.vocab_size});
}

void KvCache::commit(const Arena& arena, Backend& backend) {
  backend_ = &backend;
  for (const MemoryPlan::Slot slot : layer_slots_) layers_.push_back(arena[slot]);
  slots_ = arena[slots_slot_];
  cached_ = arena[cached_slot_];
  last_rows_ = arena[last_rows_slot_];
  last_hidden_ = arena[last_hidden_slot_];
  logits_ = arena[logits_slot_];
  if (rope_slot_) rope_ = arena[*rope_slot_];
}

CachedInputs KvCache::upload(Stream& compute, const CachedBatch& batch) {
  const size_t count = batch.slots.size();
  TOKAMAK_CHECK(count > 0 && count <= lengths_.size() && batch.cu_seqlens.size() == count + 1, count, " sequences, ",
                batch.cu_seqlens.size(), " bounds, ", lengths_.size(), " slots");
  CachedInputs out{.layers = layers_};
  std::vector<int32_t> cached, last_rows;
  for (size_t s = 0; s < count; ++s) {
    const int64_t slot = batch.slots[s], fresh = batch.cu_seqlens[s + 1] - batch.cu_seqlens[s];
    TOKAMAK_CHECK(0 <= slot && slot < slots() && fresh > 0 && length(slot) + fresh <= capacity(), "sequence ", s,
                  " in slot ", slot, " has ", fresh, " new tokens; ", slots(), " slots of ", capacity());
    TOKAMAK_CHECK(std::count(batch.slots.begin(), batch.slots.end(), slot) == 1, "slot ", slot, " is given twice");
    cached.push_back(static_cast<int32_t>(length(slot)));
    last_rows.push_back(batch.cu_seqlens[s + 1] - 1);
    out.max_new = std::max(out.max_new, fresh);
    out.max_cached = std::max(out.max_cached, length(slot));
    out.max_length = std::max(out.max_length, length(slot) + fresh);
  }
  const auto send = [&](const int32_t* values, Tensor whole) {
    const Tensor tensor = whole.rows(0, static_cast<int64_t>(count));
    backend_->device->copy_to_device(compute, values, tensor);
    return tensor;
  };
  out.slots = send(batch.slots.data(), slots_);
  out.cached = send(cached.data(), cached_);
  send(last_rows.data(), last_rows_);
  if (rope_) out.rope = dynamic_rope(compute, batch);
  return out;
}

Tensor KvCache::dynamic_rope(Stream& compute, const CachedBatch& batch) {
  const auto width = static_cast<size_t>(config_.head_size());
  const std::vector<int32_t> at = positions(batch);
  std::vector<float> rows(at.size() * width);
  for (size_t s = 0; s < batch.slots.size(); ++s) {
    const int64_t length_then = batch.prompt_lengths.empty()
                                    ? length(batch.slots[s]) + batch.cu_seqlens[s + 1] - batch.cu_seqlens[s]
                                    : batch.prompt_lengths[s];
    const RopeFrequencies frequencies = rope_frequencies(config_, length_then);
    for (auto n = static_cast<size_t>(batch.cu_seqlens[s]); n < static_cast<size_t>(batch.cu_seqlens[s + 1]); ++n) {
      write_rope_row(frequencies, at[n], std::span(rows).subspan(n * width, width));
    }
  }
  const Tensor table = rope_.rows(0, std::ssize(at));
  backend_->device->copy_to_device(compute, rows.data(), table);
  return table;
}

Tensor KvCache::last_tokens(Stream& compute, const CachedBatch& batch, Tensor hidden) {
  const int64_t sequences = std::ssize(batch.slots);
  if (hidden.dim(0) == sequences) return hidden;
  const Tensor last = last_hidden_.rows(0, sequences);
  backend_->ops->embedding(compute, {.ids = last_rows_.rows(0, sequences), .table = hidden, .out = last});
  return last;
}

void KvCache::cut(int64_t slot, int64_t length) {
  TOKAMAK_CHECK(0 <= length && length <= lengths_[slot], "slot ", slot, " has ", lengths_[slot], " tokens, not ",
                length);
  TOKAMAK_CHECK(length == 0 || length == lengths_[slot] || options_.ends == CacheEnds::kCutOff);
  lengths_[slot] = length;
}

void KvCache::grow(const CachedBatch& batch) {
  for (size_t s = 0; s < batch.slots.size(); ++s) {
    lengths_[batch.slots[s]] += batch.cu_seqlens[s + 1] - batch.cu_seqlens[s];
  }
}

std::vector<int32_t> KvCache::positions(const CachedBatch& batch) const {
  std::vector<int32_t> positions;
  for (size_t s = 0; s < batch.slots.size(); ++s) {
    const auto first = static_cast<int32_t>(length(batch.slots[s]));
    for (int32_t n = batch.cu_seqlens[s]; n < batch.cu_seqlens[s + 1]; ++n) {
      positions.push_back(first + n - batch.cu_seqlens[s]);
    }
  }
  return positions;
}

namespace {

// Uploads a batch, and shows it to `run` as the model's.
template <class Run>
auto with_cache(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache, const Run& run) {
  TOKAMAK_CHECK(model.cached_sequences() >= cache.slots() && cache.capacity() <= model.max_length(), "a cache of ",
                cache.slots(), " x ", cache.capacity(), ", planned for ", model.cached_sequences(), " x ",
                model.max_length());
  const CachedInputs cached = cache.upload(compute, batch);
  std::vector<int32_t> positions = cache.positions(batch);
  if (cached.rope) std::iota(positions.begin(), positions.end(), 0);  // one row per token
  const auto result = run(TokenBatch{batch.tokens, {}, positions, batch.cu_seqlens}, cached);
  cache.grow(batch);
  return result;
}

}  // namespace

Tensor forward_cached(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache,
                      const LogitRows& see) {
  return with_cache(model, compute, batch, cache, [&](const TokenBatch& tokens, const CachedInputs& cached) {
    const Tensor hidden = model.forward_cached(compute, tokens, cached);
    for (int64_t row = 0; see && row < hidden.dim(0); row += cache.slots()) {
      const Tensor rows = hidden.rows(row, std::min(row + cache.slots(), hidden.dim(0)));
      model.head(compute, rows, cache.logits(rows.dim(0)));
      see(row, cache.logits(rows.dim(0)));
    }
    const Tensor logits = cache.logits(std::ssize(batch.slots));
    model.head(compute, cache.last_tokens(compute, batch, hidden), logits);
    return logits;
  });
}

TokenScores evaluate_cached(Transformer& model, Stream& compute, const CachedBatch& batch, const CachedTargets& targets,
                            Tensor sums, KvCache& cache) {
  return with_cache(model, compute, batch, cache, [&](TokenBatch tokens, const CachedInputs& cached) {
    tokens.targets = targets.targets;
    tokens.rows = targets.rows;
    return model.evaluate(compute, tokens, sums, &cached);
  });
}

}  // namespace tokamak
