// The decoder with a cache: new tokens of several sequences, prompts and single tokens alike. The pass over the units
// is that of training; only a layer's attention differs.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/kv_cache.h"
#include "model/rope_table.h"
#include "model/transformer.h"

namespace tokamak {

Tensor Transformer::forward_cached(Stream& compute, const CachedBatch& batch, KvCache& cache) {
  TOKAMAK_CHECK(options_.cached_sequences >= cache.slots() && cache.capacity() <= options_.max_length, "a cache of ",
                cache.slots(), " x ", cache.capacity(), ", planned for ", options_.cached_sequences, " x ",
                options_.max_length);
  std::vector<int32_t> positions = cache.positions(batch);
  Tensor rope;
  if (dynamic_rope_) {
    rope = dynamic_rope(compute, batch, positions, cache);
    std::iota(positions.begin(), positions.end(), 0);  // a row for each token
  }
  const DeviceCachedBatch cached = cache.upload(compute, batch);
  DeviceBatch in = inputs_.upload(compute, {batch.tokens, {}, positions, batch.cu_seqlens});
  in.rope = rope;
  in.cached = &cached;
  const Activations a = activations_.first_rows(in.count());
  forward(compute, in, a);

  const auto sequences = static_cast<int64_t>(batch.slots.size());
  Tensor last = a.norm;
  if (in.count() > sequences) {
    last = cache.last_hidden(sequences);
    ops_.embedding(compute, {.ids = cached.last_rows, .table = a.norm, .out = last});
  }
  const Tensor logits = cache.logits(sequences);
  const Weights w = parameters_.acquire(index_.head(), compute);
  ops_.gemm(compute, {.a = last, .b = w[0], .c = logits, .trans_b = Transpose::kYes, .label = "head"});
  parameters_.release(index_.head(), compute);
  cache.grow(batch);
  return logits;
}

Tensor Transformer::dynamic_rope(Stream& compute, const CachedBatch& batch, std::span<const int32_t> positions,
                                 const KvCache& cache) {
  const auto width = static_cast<size_t>(heads_.head_dim);
  std::vector<float> rows(positions.size() * width);
  for (size_t s = 0; s < batch.slots.size(); ++s) {
    const int64_t length = batch.prompt_lengths.empty()
                               ? cache.length(batch.slots[s]) + batch.cu_seqlens[s + 1] - batch.cu_seqlens[s]
                               : batch.prompt_lengths[s];
    const RopeFrequencies frequencies = rope_frequencies(config_, length);
    for (auto n = static_cast<size_t>(batch.cu_seqlens[s]); n < static_cast<size_t>(batch.cu_seqlens[s + 1]); ++n) {
      write_rope_row(frequencies, positions[n], std::span(rows).subspan(n * width, width));
    }
  }
  const Tensor table = dynamic_rope_.rows(0, static_cast<int64_t>(positions.size()));
  device_.copy_to_device(compute, rows.data(), table);
  return table;
}

void Transformer::attend(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  const Tensor qkv = a.rotated_of(static_cast<size_t>(l));
  if (in.cached != nullptr) {
    const DeviceCachedBatch& cached = *in.cached;
    const CachedSequences sequences{in.cu_seqlens, cached.slots, cached.cached};
    const Tensor cache = cached.layers[static_cast<size_t>(l)];
    ops_.cache_append(compute, {.qkv = qkv, .sequences = sequences, .cache = cache, .heads = heads_});
    if (cached.max_cached > 0) {
      ops_.cached_attention(compute, {.qkv = qkv,
                                      .sequences = sequences,
                                      .cache = cache,
                                      .out = s.attn,
                                      .heads = heads_,
                                      .scale = heads_.scale(),
                                      .max_new = cached.max_new,
                                      .max_length = std::min(cached.max_cached + cached.max_new, cache.dim(2))});
      return;
    }
  }
  ops_.attention(compute, {.qkv = qkv,
                           .cu_seqlens = in.cu_seqlens,
                           .out = s.attn,
                           .lse = s.lse,
                           .heads = heads_,
                           .scale = heads_.scale(),
                           .max_length = options_.max_length});
}

}  // namespace tokamak
