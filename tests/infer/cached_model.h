// A small model with a cache.
#pragma once

#include "infer/kv_cache.h"
#include "model/golden.h"

namespace tokamak {

struct CachedModel : SmallModel {
  CachedModel(const ModelConfig& config, Comm& comm, const SmallModelOptions& options)
      : SmallModel(config, comm, options),
        cache(config,
              {.slots = options.cached_sequences,
               .capacity = options.max_length,
               .max_tokens = options.max_tokens,
               .compute = options.compute},
              cache_plan),
        cache_arena(cache_plan, *backend.device) {
    cache.commit(cache_arena, backend);
  }

  MemoryPlan cache_plan;
  KvCache cache;
  Arena cache_arena;
};

}  // namespace tokamak
