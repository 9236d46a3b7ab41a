// The decoder with a cache: new tokens of several sequences, prompts and single tokens alike.
#pragma once

#include "infer/kv_cache.h"
#include "model/transformer.h"

namespace tokamak {

// Continues sequences by their new tokens, of any number: the tokens' keys and values go into the cache. With
// rope_scaling dynamic they are turned by the frequencies for the sequence's length then (of a prompt: its own), and
// what is cached stays as it was turned, as in transformers. Returns the logits of the last token of each, in the
// cache's own buffer until its next use.                                          (S, V) f32
Tensor forward_cached(Transformer& model, Stream& compute, const CachedBatch& batch, KvCache& cache);

}  // namespace tokamak
