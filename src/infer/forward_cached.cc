#include "infer/forward_cached.h"

#include <numeric>

#include "base/error.h"

namespace tokamak {

Tensor forward_cached(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache) {
  TOKAMAK_CHECK(model.cached_sequences() >= cache.slots() && cache.capacity() <= model.max_length(), "a cache of ",
                cache.slots(), " x ", cache.capacity(), ", planned for ", model.cached_sequences(), " x ",
                model.max_length());
  const CachedInputs cached = cache.upload(compute, batch);
  std::vector<int32_t> positions = cache.positions(batch);
  if (cached.rope) std::iota(positions.begin(), positions.end(), 0);  // one row per token
  const Tensor hidden = model.forward_cached(compute, {batch.tokens, {}, positions, batch.cu_seqlens}, cached);
  const Tensor logits = cache.logits(std::ssize(batch.slots));
  model.head(compute, cache.last_tokens(compute, batch, hidden), logits);
  cache.grow(batch);
  return logits;
}

}  // namespace tokamak
