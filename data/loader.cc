#include "data/loader.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "data/block_sums.h"

namespace tokamak {

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
  ring_.resize(options_.prefetch + 1);
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
