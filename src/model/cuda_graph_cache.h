// Passes over a micro-batch (forward and backward) as recorded graphs: one launch in the place of hundreds, which is
// what small models wait for. A pass is the same work on the same memory wherever its key is the same, because all
// buffers are planned and keep their places. The first pass of a key runs as it is written, so that what is made at
// first use is there; the second is recorded. What a pass does on the host is done when it is recorded, not when it is
// replayed.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backend/device.h"
#include "backend/ops.h"
#include "backend/options.h"

namespace tokamak {

struct PassKey {
  const void* inputs = nullptr;  // where the micro-batch lies
  const void* sums = nullptr;    // where its losses go
  int64_t tokens = 0;
  int64_t documents = 0;
  Write gradients = Write::kOverwrite;
  auto operator<=>(const PassKey&) const = default;
};

class CudaGraphCache {
 public:
  using Pass = std::function<void()>;  // enqueues on the stream that it is run with

  // kOn: every pass is replayed as soon as it can be. kAuto: of one key, three passes each way are timed on the device,
  // and the faster way is kept for all.
  CudaGraphCache(Device& device, CudaGraphs kind);

  // Error(kDevice) where kOn asks for what cannot be recorded; with kAuto, a warning, and passes run as they are
  // written.
  void run(Stream& stream, const PassKey& key, const Pass& pass);

  bool settled() const { return way_ != Way::kMeasuring; }
  bool replays() const { return way_ == Way::kReplayed; }

 private:
  enum class Way { kMeasuring, kDirect, kReplayed };

  // The same work, timed some times.
  struct Series {
    struct Times {
      std::unique_ptr<Timestamp> begin, end;
    };
    std::vector<Times> times;
    size_t begun = 0;
    bool full() const { return begun == times.size(); }
    void time(Stream& stream, const Pass& work);
    std::optional<double> best() const;  // nothing while one is not over
  };

  void measure(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass);
  void decide();
  bool record(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass);

  Device& device_;
  const bool required_;
  Way way_;
  std::map<PassKey, std::unique_ptr<Graph>> graphs_;  // null: the pass has run, and is not recorded
  std::optional<PassKey> measured_;
  Series direct_, replayed_;
};

// Documents to make room for, the last ones empty, where a micro-batch of `tokens` tokens has `documents`: few
// different numbers, so that few graphs serve all. Documents that all have the greatest length keep their number:
// attention may have a faster way for those.
int64_t room_for_documents(int64_t documents, int64_t tokens, int64_t max_length);

}  // namespace tokamak
