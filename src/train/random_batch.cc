#include "train/random_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rng.h"

namespace tokamak {

namespace {

// Micro-batches of a step that differ in their documents; further ones repeat them. Each takes host memory, but the
// documents of few sequences would be far from their mean.
constexpr int64_t kMostLayouts = 16;

// Boundaries of a micro-batch: of equal documents, or of those drawn for micro-batch `number` of any rank. The rest of
// an exponential length is exponential too, so each sequence may begin with a new draw.
std::vector<int32_t> boundaries(const BatchShape& shape, int64_t mean, int64_t number) {
  const RandomStream random(static_cast<uint64_t>(number), "benchmark documents");
  uint64_t drawn = 0;
  std::vector<int32_t> starts;
  for (int64_t s = 0; s < shape.micro_batch; ++s) {
    for (int64_t begin = 0; begin < shape.length;) {
      starts.push_back(static_cast<int32_t>(s * shape.length + begin));
      if (mean == 0) break;
      const double length = -static_cast<double>(mean) * log_ieee(random.uniform(drawn++));
      begin += std::max<int64_t>(1, std::llround(length));
    }
  }
  starts.push_back(static_cast<int32_t>(shape.micro_batch * shape.length));
  return starts;
}

}  // namespace

RandomBatch::RandomBatch(const BatchShape& shape, const RandomBatchOptions& options) : shape_(shape) {
  const RandomStream random(static_cast<uint64_t>(options.rank), "benchmark");
  const auto vocab = static_cast<uint64_t>(options.vocab);
  const int64_t count = shape.micro_batch * shape.length;
  for (int64_t i = 0; i < count; ++i) {
    tokens_.push_back(static_cast<int32_t>(random.word(static_cast<uint64_t>(i)) % vocab));
  }
  targets_.assign(tokens_.begin() + 1, tokens_.end());
  targets_.push_back(tokens_.front());
  const int64_t layouts = options.mean_document == 0 ? 1 : std::min(shape.micro_batches(), kMostLayouts);
  for (int64_t number = 0; number < layouts; ++number) {
    Documents documents{.positions = std::vector<int32_t>(static_cast<size_t>(count)),
                        .cu_seqlens = boundaries(shape, options.mean_document, number)};
    for (size_t d = 0; d + 1 < documents.cu_seqlens.size(); ++d) {
      const auto begin = documents.positions.begin();
      std::iota(begin + documents.cu_seqlens[d], begin + documents.cu_seqlens[d + 1], 0);
    }
    documents_.push_back(std::move(documents));
  }
}

NextBatch RandomBatch::step() {
  return [this, number = size_t{0}, left = shape_.sequences_per_rank]() mutable {
    const int64_t sequences = std::min(left, shape_.micro_batch);
    left -= sequences;
    return first(sequences, documents_[number++ % documents_.size()]);
  };
}

TokenBatch RandomBatch::first(int64_t sequences, const Documents& documents) const {
  const auto tokens = static_cast<size_t>(sequences * shape_.length);
  const std::vector<int32_t>& bounds = documents.cu_seqlens;
  const auto end = std::lower_bound(bounds.begin(), bounds.end(), static_cast<int32_t>(tokens)) + 1;
  return {std::span(tokens_).first(tokens), std::span(targets_).first(tokens),
          std::span(documents.positions).first(tokens), std::span(bounds.begin(), end)};
}

const std::vector<int32_t>& RandomBatch::most_documents() const {
  const auto fewer = [](const Documents& a, const Documents& b) { return a.cu_seqlens.size() < b.cu_seqlens.size(); };
  return std::max_element(documents_.begin(), documents_.end(), fewer)->cu_seqlens;
}

}  // namespace tokamak
