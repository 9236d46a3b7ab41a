#include "data/loader.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "data/block_sums.h"

namespace tokamak {

namespace {

// Calls visit(array, elements) for each array of a micro-batch of `tokens` = B T tokens.
void visit_batch(auto& batch, int64_t tokens, const auto& visit) {
  visit(batch.tokens, tokens);
  visit(batch.targets, tokens);
  visit(batch.positions, tokens);
  visit(batch.cu_seqlens, tokens + 1);
}

// Likewise of a sample of `length` = T tokens. The first start stays when a document begins at the same position.
void visit_sample(auto& sample, int64_t length, const auto& visit) {
  visit(sample.tokens, length + 1);
  visit(sample.targets, length);
  visit(sample.document_starts, length + 1);
  visit(sample.ranges, length + 1);
}

}  // namespace

int64_t Loader::planned_bytes(const Sizes& sizes) {
  int64_t bytes = 0;
  const auto add = [&](const auto& array, int64_t elements) { bytes += elements * int64_t{sizeof(array[0])}; };
  const MicroBatch batch;
  visit_batch(batch, sizes.micro_batch * sizes.length, add);
  bytes *= sizes.prefetch + 1;
  const Sample sample;
  visit_sample(sample, sizes.length, add);
  return bytes + kBinBlockBytes;
}

Loader::Loader(const SampleSource& source, LoaderOptions options) : source_(source), options_(options) {
  const int64_t G = options_.samples_per_step;
  const int64_t R = options_.ranks;
  TOKAMAK_CHECK(R > 0 && options_.rank >= 0 && options_.rank < R, "rank ", options_.rank, " of ", R);
  TOKAMAK_CHECK(G >= R, G, " samples a step for ", R, " ranks");
  TOKAMAK_CHECK(options_.micro_batch > 0 && options_.prefetch > 0 && options_.first_sample >= 0, "micro_batch ",
                options_.micro_batch, ", prefetch ", options_.prefetch);
  TOKAMAK_CHECK(options_.micro_batch <= std::numeric_limits<int32_t>::max() / source.sequence_length(),
                "a micro-batch of ", options_.micro_batch, " sequences has too many tokens for cu_seqlens");
  slice_begin_ = options_.rank * G / R;
  slice_end_ = (options_.rank + 1) * G / R;
  micro_batches_ = (slice_end_ - slice_begin_ + options_.micro_batch - 1) / options_.micro_batch;
  const auto reserve = [](auto& array, int64_t elements) { array.reserve(elements); };
  ring_.resize(options_.prefetch + 1);
  for (MicroBatch& batch : ring_) visit_batch(batch, options_.micro_batch * source.sequence_length(), reserve);
  visit_sample(sample_, source.sequence_length(), reserve);
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const MicroBatch& Loader::next() {
  std::unique_lock lock(mutex_);
  ++taken_;  // releases the previous micro-batch
  changed_.notify_all();
  if (filled_ < taken_ && !error_) {
    const Stopwatch watch;
    changed_.wait(lock, [&] { return filled_ >= taken_ || error_; });
    wait_seconds_ += watch.seconds();
  }
  if (filled_ < taken_) {
    --taken_;
    std::rethrow_exception(error_);
  }
  return ring_[(taken_ - 1) % std::ssize(ring_)];
}

int64_t Loader::reserved_bytes() const {
  int64_t bytes = 0;
  const auto add = [&](const auto& array, int64_t) { bytes += int64_t(array.capacity() * sizeof(array[0])); };
  for (const MicroBatch& batch : ring_) visit_batch(batch, 0, add);
  visit_sample(sample_, 0, add);
  return bytes;
}

// Fills the ring until stopped. The slot of micro-batch n is free once n - prefetch was taken: the caller then no
// longer holds n - prefetch - 1, which is in the same slot.
void Loader::run() {
  for (int64_t n = 0;; ++n) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || n < taken_ + options_.prefetch; });
      if (stop_) return;
    }
    try {
      fill(n, ring_[n % std::ssize(ring_)]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
      return;
    }
    const std::lock_guard lock(mutex_);
    filled_ = n + 1;
    changed_.notify_all();
  }
}

void Loader::fill(int64_t number, MicroBatch& out) {
  const int64_t T = source_.sequence_length();
  const int64_t step = number / micro_batches_;
  const int64_t begin = slice_begin_ + number % micro_batches_ * options_.micro_batch;
  out.sequences = std::min(options_.micro_batch, slice_end_ - begin);
  out.length = T;
  out.first_sample = options_.first_sample + step * options_.samples_per_step + begin;
  const auto size = static_cast<size_t>(out.sequences * T);
  out.tokens.resize(size);
  out.targets.resize(size);
  out.positions.resize(size);
  out.cu_seqlens.clear();
  for (int64_t b = 0; b < out.sequences; ++b) {
    source_.read(out.first_sample + b, sample_);
    std::copy(sample_.tokens.begin(), sample_.tokens.end() - 1, out.tokens.begin() + b * T);
    std::copy(sample_.targets.begin(), sample_.targets.end(), out.targets.begin() + b * T);
    if (!options_.document_masking) sample_.document_starts.assign(1, 0);
    for (const int32_t start : sample_.document_starts) out.cu_seqlens.push_back(static_cast<int32_t>(b * T) + start);
  }
  out.segments = std::ssize(out.cu_seqlens);
  out.cu_seqlens.push_back(static_cast<int32_t>(out.sequences * T));
  for (size_t i = 0; i + 1 < out.cu_seqlens.size(); ++i) {
    const int32_t from = out.cu_seqlens[i];
    const int32_t to = out.cu_seqlens[i + 1];
    std::iota(out.positions.begin() + from, out.positions.begin() + to, 0);
  }
}

}  // namespace tokamak
