// A run so small that its step takes milliseconds.
#pragma once

#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

inline RunConfig small_run() {
  RunConfig config;
  config.model.hidden_size = 32;
  config.model.intermediate_size = 48;
  config.model.num_hidden_layers = 3;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.vocab_size = 61;
  config.training.micro_batch_size = {2};
  config.runtime.backend = BackendKind::kCpu;
  return config;
}

inline GlobalBatch small_batch(int ranks, int64_t sequences_per_rank) {
  return {.length = 8,
          .sequences_per_step = ranks * sequences_per_rank,
          .sequences_per_rank = sequences_per_rank,
          .total_steps = 1};
}

}  // namespace tokamak
