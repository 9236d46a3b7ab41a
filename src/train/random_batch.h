// Micro-batches of random tokens, cut as the loader cuts them: for benchmarks and for plans, which read no data.
#pragma once

#include <cstdint>
#include <vector>

#include "train/batch_shape.h"
#include "train/step.h"

namespace tokamak {

struct RandomBatchOptions {
  int64_t vocab = 0;
  int rank = 0;  // ranks differ in their tokens only
  // Tokens of a document on average: lengths are exponential, and the end of a sequence cuts its last document. 0: each
  // sequence is one document.
  int64_t mean_document = 0;
};

class RandomBatch {
 public:
  RandomBatch(const BatchShape& shape, const RandomBatchOptions& options);

  // A step's micro-batches in turn; valid while this lives. Every step has the same ones.
  NextBatch step();

  // Document boundaries of the micro-batch that has the most documents.
  const std::vector<int32_t>& most_documents() const;

 private:
  // Documents of a whole micro-batch, as data/loader.h defines them.
  struct Documents {
    std::vector<int32_t> positions, cu_seqlens;
  };

  TokenBatch first(int64_t sequences, const Documents& documents) const;

  BatchShape shape_;
  std::vector<int32_t> tokens_, targets_;  // of a whole micro-batch
  std::vector<Documents> documents_;       // of micro-batches in turn
};

}  // namespace tokamak
