#include "data/order/megatron_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "data/order/numpy_random.h"

namespace tokamak {

namespace {

constexpr int64_t kMost = int64_t{std::numeric_limits<uint32_t>::max()} - 2;  // Megatron's arrays have 64 bits above
constexpr double kSeparateBelow = 0.80;                                       // of an epoch, Megatron's threshold

constexpr double kMostBytes = 1e14;  // so that those of all sources can be added

// The epochs that N samples of T tokens and one more take, of t tokens each.
int64_t epochs_of(int64_t N, int64_t T, int64_t t) {
  if (N > std::numeric_limits<int64_t>::max() / 2 / T) fail(Kind::kConfig, str(N, " samples of ", T, " tokens"));
  return std::max<int64_t>(1, (N * T + 1 + t - 1) / t);
}

}  // namespace

MegatronOrder::MegatronOrder(std::span<const int32_t> lengths, SequenceRange part, Options options) {
  const int64_t T = options.length;
  TOKAMAK_CHECK(T > 0 && options.samples > 0, options.samples, " samples of ", T);
  TOKAMAK_CHECK(0 <= part.begin && part.begin <= part.end && part.end <= std::ssize(lengths), part.begin, part.end);
  starts_.assign(1, 0);
  starts_.reserve(lengths.size() + 1);
  for (const int32_t length : lengths) starts_.push_back(starts_.back() + length);
  const int64_t tokens = starts_[part.end] - starts_[part.begin];  // of an epoch
  const int64_t D = part.end - part.begin;
  if (tokens <= T) {
    fail(Kind::kData, str("the training part has ", tokens, " tokens in ", D,
                          " sequences; a sample takes data.sequence_length + 1 = ", T + 1));
  }
  epochs_ = epochs_of(options.samples, T, tokens);
  epoch_ = (tokens - 1) / T;
  const int64_t M = (epochs_ * tokens - 1) / T;
  if (M > kMost || epochs_ * D > kMost) {
    fail(Kind::kConfig, str("order megatron of ", M, " samples and ", epochs_, " epochs of ", D, " sequences; at most ",
                            kMost, " are possible"));
  }
  const int64_t before_last = ((epochs_ - 1) * tokens - 1) / T;  // samples without the last epoch
  const bool separate = epochs_ > 1 && options.samples - before_last < int64_t(kSeparateBelow * double(epoch_));

  NumpyRandom random(options.seed);
  documents_.reserve(epochs_ * D);
  for (int64_t epoch = 0; epoch < epochs_; ++epoch) {
    documents_.resize((epoch + 1) * D);
    std::iota(documents_.end() - D, documents_.end(), static_cast<int32_t>(part.begin));
  }
  const std::span<int32_t> documents = documents_;
  const auto first_epochs = separate ? D * (epochs_ - 1) : std::ssize(documents);
  random.shuffle(documents.first(first_epochs));
  random.shuffle(documents.subspan(first_epochs));

  cut(M, T);

  shuffle_.resize(M);
  std::iota(shuffle_.begin(), shuffle_.end(), 0u);
  const std::span<uint32_t> shuffle = shuffle_;
  const int64_t first_samples = separate ? before_last : M;
  random.shuffle(shuffle.first(first_samples));
  random.shuffle(shuffle.subspan(first_samples));
}

// Finds where each sample begins, and where the last one ends. Consecutive samples share a token.
void MegatronOrder::cut(int64_t samples, int64_t length) {
  cuts_.reserve(samples + 1);
  cuts_.push_back({});
  int64_t document = 0;
  int64_t offset = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t wanted = length + 1;
    for (;;) {
      const int64_t sequence = documents_[document];
      const int64_t left = starts_[sequence + 1] - starts_[sequence] - offset;
      if (left >= wanted) break;
      wanted -= left;
      ++document;
      offset = 0;
    }
    offset += wanted - 1;
    cuts_.push_back({static_cast<uint32_t>(document), static_cast<int32_t>(offset)});
  }
}

void MegatronOrder::ranges(int64_t j, std::vector<TokenRange>& out) const {
  const uint32_t sample = shuffle_[j % samples()];
  const Cut begin = cuts_[sample];
  const Cut end = cuts_[int64_t{sample} + 1];
  out.clear();
  for (int64_t document = begin.document; document <= end.document; ++document) {
    const int64_t sequence = documents_[document];
    const int64_t first = starts_[sequence] + (document == begin.document ? begin.offset : 0);
    const int64_t last = document == end.document ? starts_[sequence] + end.offset + 1 : starts_[sequence + 1];
    if (last > first) out.push_back({first, last - first});
  }
}

int64_t MegatronOrder::memory_bytes() const {
  return array_bytes(double(starts_.size()) - 1, double(documents_.size()), double(shuffle_.size()));
}

int64_t MegatronOrder::planned_bytes(int64_t tokens, int64_t sequences, Options options) {
  const auto epochs = double(epochs_of(options.samples, options.length, tokens));
  const double samples = std::floor((epochs * double(tokens) - 1) / double(options.length));
  const double lengths = double(sequences) * sizeof(int32_t);
  return array_bytes(double(sequences), epochs * double(sequences), samples) +
         static_cast<int64_t>(std::min(lengths, kMostBytes));
}

// For S sequences, the documents of all epochs and M samples. Counts are doubles: those of a foreign index may
// overflow.
int64_t MegatronOrder::array_bytes(double sequences, double documents, double samples) {
  const double bytes = (sequences + 1) * sizeof(starts_[0]) + documents * sizeof(documents_[0]) +
                       (samples + 1) * sizeof(cuts_[0]) + samples * sizeof(shuffle_[0]);
  return static_cast<int64_t>(std::min(bytes, kMostBytes));
}

}  // namespace tokamak
