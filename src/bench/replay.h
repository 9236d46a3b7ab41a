// A recorded operation again, by itself: the same call on operands of its own with random contents, timed.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "plan/step_record.h"

namespace tokamak {

struct ReplayOptions {
  int64_t vocab = 0;                // token ids and targets are below it
  std::vector<int32_t> cu_seqlens;  // document boundaries of a micro-batch; positions follow from them
  // Calls go in turn through copies of the operands, of so many bytes in all: in a step, most are no longer in a cache.
  int64_t spread_bytes = 0;  // 0: one copy
};

class Replay {
 public:
  // Takes memory for the operands of any one of `calls`.
  Replay(Backend& backend, const std::vector<OperationValue>& calls, const ReplayOptions& options);

  // Plans the memory that the constructor takes.
  struct Slots {
    MemoryPlan::Slot operands, random;
  };
  static Slots plan(const std::vector<OperationValue>& calls, const Device& device, MemoryPlan& plan,
                    const ReplayOptions& options = {});

  // Lays out and fills the operands of `call`: from now on this is what is timed. Operands that were one tensor are one
  // again. Flat state (the optimizer's) is cut to a length that is still far beyond any cache.
  void prepare(const OperationValue& call);
  double bytes() const;  // that it reads and writes
  // Seconds of one call. As many are enqueued at once as take about `least` seconds in all, 100 at most, so that neither
  // the first launch nor the wait for the last counts.
  double seconds(double least);

 private:
  void run();
  void fill(const Operand& operand);
  void make_tables(const OperationValue& call);  // what attention reads of documents: random offsets would lead astray

  Backend& backend_;
  ReplayOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor memory_;  // bytes, as bf16
  Tensor random_;  // f32, drawn once
  std::vector<OperationValue> copies_;
  size_t next_ = 0;
};

constexpr double kSecondsOfGemm = 0.01;  // that a GEMM is timed for, in a round
std::vector<OperationValue> calls_of(const std::vector<RecordedGemm>& gemms);

double median(std::vector<double> values);

}  // namespace tokamak
