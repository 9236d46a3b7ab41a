#include "train/random_batch.h"

#include <algorithm>

#include "base/rng.h"

namespace tokamak {

RandomBatch::RandomBatch(const BatchShape& shape, int64_t vocab, int rank) : shape_(shape) {
  const RandomStream random(static_cast<uint64_t>(rank), "benchmark");
  const int64_t count = shape.micro_batch * shape.length;
  for (int64_t i = 0; i < count; ++i) {
    tokens_.push_back(static_cast<int32_t>(random.word(static_cast<uint64_t>(i)) % static_cast<uint64_t>(vocab)));
    positions_.push_back(static_cast<int32_t>(i % shape.length));
  }
  targets_.assign(tokens_.begin() + 1, tokens_.end());
  targets_.push_back(tokens_.front());
  for (int64_t s = 0; s <= shape.micro_batch; ++s) cu_seqlens_.push_back(static_cast<int32_t>(s * shape.length));
}

NextBatch RandomBatch::step() {
  return [this, left = shape_.sequences_per_rank]() mutable {
    const int64_t sequences = std::min(left, shape_.micro_batch);
    left -= sequences;
    return first(sequences);
  };
}

TokenBatch RandomBatch::first(int64_t sequences) const {
  const auto tokens = static_cast<size_t>(sequences * shape_.length);
  return {std::span(tokens_).first(tokens), std::span(targets_).first(tokens), std::span(positions_).first(tokens),
          std::span(cu_seqlens_).first(static_cast<size_t>(sequences + 1))};
}

}  // namespace tokamak
