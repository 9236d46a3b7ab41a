// The decoder with a KV cache: new tokens of several sequences, both prefill and decode.
#pragma once

#include "infer/kv_cache.h"
#include "model/transformer.h"

namespace tokamak {

// Runs the new tokens of each sequence, any number of them, and appends their keys and values to the cache. With
// rope_scaling dynamic, they are rotated by the frequencies for the sequence's current length (for a prompt: the
// prompt's). Cached keys keep their rotation, as in transformers. Returns the logits of each sequence's last token, in
// the cache's own buffer, valid until its next use.                                (S, V) f32
Tensor forward_cached(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache);

}  // namespace tokamak
