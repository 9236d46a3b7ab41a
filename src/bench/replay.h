// Repeats and times a recorded operation by itself: the same call on operands of its own with random contents.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "plan/step_record.h"

namespace tokamak {

struct ReplayOptions {
  int64_t vocab = 0;                // token ids and targets are below it
  std::vector<int32_t> cu_seqlens;  // document boundaries of a micro-batch; positions follow from them
  // Calls cycle through copies of the operands of this size in all, since in a step most have left the caches.
  int64_t spread_bytes = 0;  // 0: one copy
};

class Replay {
 public:
  // Allocates memory for the operands of any one of `calls`.
  Replay(Backend& backend, const std::vector<OperationValue>& calls, const ReplayOptions& options);

  // Plans the memory that the constructor allocates.
  struct Slots {
    MemoryPlan::Slot operands, random;
  };
  static Slots plan(const std::vector<OperationValue>& calls, const Device& device, MemoryPlan& plan,
                    const ReplayOptions& options = {});

  // Lays out and fills the operands of `call`, which is timed from now on. Operands that were one tensor are one again.
  // Flat state (the optimizer's) is cut to a length that is still far beyond any cache.
  void prepare(const OperationValue& call);
  double bytes() const;  // that a call reads and writes
  // Returns the seconds of one call: a mean over at most 100 calls, as many as take about `least` seconds. Over many
  // calls the first launch and the last wait hardly matter.
  double seconds(double least);

 private:
  void run();
  void fill(const Operand& operand);
  void make_tables(const OperationValue& call);  // of attention's documents: random offsets would point anywhere

  Backend& backend_;
  ReplayOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor memory_;  // bytes, as bf16
  Tensor random_;  // f32, drawn once
  std::vector<OperationValue> copies_;
  size_t next_ = 0;
};

constexpr double kSecondsOfGemm = 0.01;  // for which a round repeats each GEMM
std::vector<OperationValue> calls_of(const std::vector<RecordedGemm>& gemms);

// Measures each of `count` things once per round, and returns their medians. A disturbance of a second or two then
// spoils one round of each thing, which its median leaves out, instead of all rounds of one.
std::vector<double> medians_in_turn(int64_t rounds, size_t count, const std::function<double(size_t)>& measure);

// The FLOPs that a call of this title computes on documents, over those that Ops counts. The boundaries lie on the
// device, so Ops counts the longest documents that the call allows. There a token attends to `counted` tokens on
// average, and to `attended` tokens in these documents.
double share_of_counted(std::string_view title, double attended, double counted);

}  // namespace tokamak
