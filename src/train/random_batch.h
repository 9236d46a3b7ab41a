// Micro-batches of random tokens, cut as the loader cuts them: for benchmarks and for plans, which read no data.
#pragma once

#include <cstdint>
#include <vector>

#include "train/batch_shape.h"
#include "train/step.h"

namespace tokamak {

class RandomBatch {
 public:
  RandomBatch(const BatchShape& shape, int64_t vocab, int rank);

  // A step's micro-batches in turn; valid while this lives. Each sequence is one document.
  NextBatch step();

 private:
  TokenBatch first(int64_t sequences) const;

  BatchShape shape_;
  std::vector<int32_t> tokens_, targets_, positions_, cu_seqlens_;  // of a whole micro-batch
};

}  // namespace tokamak
