// Statistics of activations over all ranks, in the step's last micro-batch: outputs of the embedding, of parts of
// layers and of whole layers, of the final norm, and some logits. Passes that are watched show their activations to it
// as they compute them; the host never waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/tensor_sums.h"
#include "comm/comm.h"
#include "tensor/arena.h"

namespace tokamak {

class ActivationStatistics {
 public:
  static constexpr int64_t kLogitRows = 64;  // tokens whose logits are measured: the micro-batch's first ones

  struct Options {
    std::vector<std::string> names;  // of those that are measured
    int64_t vocab = 0;
  };
  // Plans its buffers. The group and `backend` outlive this.
  ActivationStatistics(Options options, Comm& ranks, Backend& backend, MemoryPlan& plan);
  void commit(const Arena& arena);

  void begin(Stream& compute);  // forgets what earlier steps have shown
  void see(Stream& compute, const std::string& name, Tensor values);
  Tensor logits(int64_t rows) const;  // a buffer for them; empty if they are not measured        (rows, V) f32
  void finish(Stream& compute);       // collective: enqueues the sum over the ranks and its copy to the host

  struct Activation {
    std::string name;
    TensorSums sums;
  };
  struct Result {
    std::vector<Activation> activations;  // in the order of Options::names
    double seconds = 0;                   // device time of finish()
  };
  Result take();                       // of the last finish(); waits for it, not for later work
  void forget() { waiting_ = false; }  // drops the result not yet taken

 private:
  int64_t rows() const { return std::ssize(options_.names); }

  Options options_;
  Comm& ranks_;
  Backend& backend_;
  std::unordered_map<std::string, int64_t> row_of_;
  // The statistics of each row, on each rank; then the magnitudes of each row. A rank fills in its own statistics, and
  // the others have zeros. So the sum over the ranks also keeps minima and maxima.
  Tensor values_;   // (ranks rows kStatistics + rows kMagnitudeBins) f64
  Tensor on_host_;  // a pinned copy
  Tensor logits_;   // (kLogitRows, V) f32, or none
  MemoryPlan::Slot values_slot_, on_host_slot_;
  std::optional<MemoryPlan::Slot> logits_slot_;
  std::unique_ptr<Event> arrived_;
  std::unique_ptr<Timestamp> begin_, end_;
  bool waiting_ = false;  // for take()
};

}  // namespace tokamak
