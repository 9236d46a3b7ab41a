// The second compute stream, for the GEMMs of weight gradients. Nothing else in a pass reads what they write, so each
// starts when its operands are there and runs concurrently with the operations that compute the activations' gradients:
// it fills SMs that those leave idle. What must stay true: `compute` does not overwrite an operand that a GEMM may still
// read, and the pass ends when all are done. Without a second stream all goes to `compute`, and nothing waits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "backend/ops.h"

namespace tokamak {

class WeightGradientStream {
 public:
  void commit(Device& device);  // makes the second stream

  // Forgets the GEMMs of a pass that did not end: its capture was refused.
  void begin_pass();
  // Enqueues the GEMM behind all work of `compute` so far.
  void enqueue(Ops& ops, Stream& compute, const Gemm& gemm);
  // `compute` waits for the GEMMs that read `tensor`, which it is about to overwrite.
  void wait_for_readers(Stream& compute, Tensor tensor);
  // `compute` waits for all GEMMs: then the pass's gradients are complete, and a captured stream is joined.
  void join(Stream& compute);

  // The stream that enqueue() uses.
  Stream& writer(Stream& compute) { return stream_ != nullptr ? *stream_ : compute; }

 private:
  struct Read {
    Tensor tensor;
    int64_t gemm;
  };
  void wait_for(Stream& compute, int64_t gemm);

  // The event of a GEMM is reused kEvents GEMMs later. Who waits for it then waits for that one: later, never too early.
  static constexpr size_t kEvents = 8;

  std::unique_ptr<Stream> stream_;  // null: none
  std::unique_ptr<Event> operands_ready_;
  std::array<std::unique_ptr<Event>, kEvents> done_;
  int64_t enqueued_ = 0, waited_ = 0;  // GEMMs, in order: `compute` has waited for the first waited_
  std::vector<Read> reads_;            // of GEMMs that `compute` has not waited for
};

}  // namespace tokamak
