// Captures passes over a micro-batch (forward and backward) as CUDA graphs: one launch then replaces hundreds, which
// limit the speed of small models. Passes with equal keys do the same work on the same memory, because all buffers are
// persistent. The first pass of a key runs eagerly, so that lazily created objects exist; the second is captured. A
// replay runs no host code of the pass.
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
  const void* inputs = nullptr;  // address of the micro-batch
  const void* sums = nullptr;    // address of its loss sums
  int64_t tokens = 0;
  int64_t documents = 0;
  Write gradients = Write::kOverwrite;
  auto operator<=>(const PassKey&) const = default;
};

class CudaGraphCache {
 public:
  using Pass = std::function<void()>;  // enqueues the pass on the stream given to run()

  // kOn: replays every pass but a key's first. kAuto: times three eager passes and three replays of one key in
  // turn, on the device, and keeps the faster variant for all keys.
  CudaGraphCache(Device& device, CudaGraphs kind);

  // If a pass cannot be captured: kOn raises Error(kUnsupported); kAuto warns, and passes run eagerly.
  void run(Stream& stream, const PassKey& key, const Pass& pass);

  bool settled() const { return way_ != Way::kMeasuring; }
  bool replays() const { return way_ == Way::kReplayed; }

 private:
  enum class Way { kMeasuring, kDirect, kReplayed };

  // Timings of one variant.
  struct Series {
    struct Times {
      std::unique_ptr<Timestamp> begin, end;
    };
    std::vector<Times> times;
    size_t begun = 0;
    bool full() const { return begun == times.size(); }
    void time(Stream& stream, const Pass& work);
    std::optional<double> best() const;  // the shortest time; nullopt until all are known
  };

  void measure(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass);
  void decide();
  bool record(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass);

  Device& device_;
  const bool required_;
  Way way_;
  std::map<PassKey, std::unique_ptr<Graph>> graphs_;  // null: the pass ran eagerly and is not captured yet
  std::optional<PassKey> measured_;
  Series direct_, replayed_;
};

// Rounds a micro-batch's document count up to a power of two, at most to `tokens`. Empty documents at the end fill up
// the count. So passes have few distinct counts and need few graphs. If all documents have the maximum length, the
// count stays as it is, because attention may have a faster path for such batches.
int64_t room_for_documents(int64_t documents, int64_t tokens, int64_t max_length);

}  // namespace tokamak
