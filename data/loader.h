// Produces one rank's micro-batches in order, prefetched by a thread. The only state is the number of the next global
// sample. Step s of a loader covers samples [first_sample + s G, ... + G). Rank r of R takes its contiguous slice
// [r G / R, (r + 1) G / R) of them, in micro-batches. The stream over all ranks does not depend on R.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/sample_source.h"

namespace tokamak {

struct MicroBatch {
  int64_t sequences = 0;           // B; the last micro-batch of a step is smaller if the slice is not a multiple of B
  int64_t length = 0;              // T
  std::vector<int32_t> tokens;     // (B, T)
  std::vector<int32_t> targets;    // (B, T): the token after each; -1: none, the loss ignores it
  std::vector<int32_t> positions;  // (B, T): from 0 in each segment
  // Attention does not cross segments. A segment is a document, or a sequence without document masking. Segment i
  // covers tokens [cu_seqlens[i], cu_seqlens[i + 1]) of the B T; there are at most B T of them.
  int64_t segments = 0;
  std::vector<int32_t> cu_seqlens;  // (segments + 1), the last is B T
  int64_t first_sample = 0;         // global number of sequence 0
};

struct LoaderOptions {
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t micro_batch = 1;       // B
  int64_t samples_per_step = 1;  // G, at least `ranks`
  bool document_masking = true;
  int64_t first_sample = 0;  // first sample of the first step
  int64_t prefetch = 4;      // micro-batches to prefetch
};

class Loader {
 public:
  // Host memory, in bytes, of a loader of micro-batches of B sequences of T tokens. It has the micro-batches that it
  // prefetches, the one that its caller holds, and one sample. All of this is reserved at the start. A block of a file
  // comes and goes, while its checksum is compared.
  struct Sizes {
    int64_t micro_batch = 1;  // B
    int64_t length = 0;       // T
    int64_t prefetch = LoaderOptions().prefetch;
  };
  static int64_t planned_bytes(const Sizes& sizes);

  // `source` must outlive the loader.
  Loader(const SampleSource& source, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next micro-batch, valid until the next call. Rethrows an error of the reading thread, also in every later call.
  const MicroBatch& next();

  int64_t micro_batches_per_step() const { return micro_batches_; }  // of this rank
  double wait_seconds() const { return wait_seconds_; }              // total time that next() has waited
  int64_t reserved_bytes() const;                                    // of all its arrays: planned_bytes() less a block

 private:
  void run();
  void fill(int64_t number, MicroBatch& out);

  const SampleSource& source_;
  const LoaderOptions options_;
  int64_t slice_begin_ = 0;  // first sample of this rank within a global batch
  int64_t slice_end_ = 0;
  int64_t micro_batches_ = 0;
  Sample sample_;  // used by the reading thread
  double wait_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MicroBatch> ring_;  // (prefetch + 1): the caller holds one
  int64_t filled_ = 0;            // micro-batches ready so far
  int64_t taken_ = 0;             // micro-batches returned so far
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace tokamak
