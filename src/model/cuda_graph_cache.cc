#include "model/cuda_graph_cache.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

namespace {

constexpr size_t kTimes = 3;        // timings of each variant; the shortest decides
constexpr size_t kMostGraphs = 64;  // they take memory outside of the plan; passes of further keys run eagerly

std::string milliseconds(double seconds) { return fixed(1e3 * seconds, 3) + " ms"; }

}  // namespace

CudaGraphCache::CudaGraphCache(Device& device, CudaGraphs kind)
    : device_(device),
      required_(kind == CudaGraphs::kOn),
      way_(kind == CudaGraphs::kAuto ? Way::kMeasuring
           : required_               ? Way::kReplayed
                                     : Way::kDirect) {
  if (way_ != Way::kMeasuring) return;
  for (Series* series : {&direct_, &replayed_}) {
    for (size_t i = 0; i < kTimes; ++i) series->times.push_back({device.make_timestamp(), device.make_timestamp()});
  }
}

void CudaGraphCache::run(Stream& stream, const PassKey& key, const Pass& pass) {
  if (way_ == Way::kMeasuring) decide();
  if (way_ == Way::kDirect) return pass();
  const auto known = graphs_.find(key);
  if (known == graphs_.end()) {
    if (graphs_.size() < kMostGraphs) graphs_.emplace(key, nullptr);
    return pass();
  }
  std::unique_ptr<Graph>& graph = known->second;
  if (way_ == Way::kMeasuring) {
    if (!measured_) measured_ = key;
    return *measured_ == key ? measure(stream, graph, pass) : pass();
  }
  if (graph != nullptr || record(stream, graph, pass)) graph->launch(stream);
}

// Times both variants alternately: a GPU that reaches its power limit would slow down the one that is timed last.
void CudaGraphCache::measure(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass) {
  if (graph == nullptr) {  // the first launch uploads the graph and is not timed
    if (record(stream, graph, pass)) graph->launch(stream);
    return;
  }
  if (direct_.begun == replayed_.begun && !direct_.full()) return direct_.time(stream, pass);
  if (replayed_.full()) return graph->launch(stream);
  replayed_.time(stream, [&] { graph->launch(stream); });
}

// Does nothing until all timings have arrived.
void CudaGraphCache::decide() {
  const std::optional<double> direct = direct_.best(), replayed = replayed_.best();
  if (!direct || !replayed) return;
  way_ = *replayed < *direct ? Way::kReplayed : Way::kDirect;
  log::info("a micro-batch takes ", milliseconds(*replayed), " as a CUDA graph, ", milliseconds(*direct),
            " without: they run ", way_ == Way::kReplayed ? "as graphs" : "without", " (runtime.cuda_graphs: auto)");
}

// Returns false if the pass could not be captured and ran eagerly.
bool CudaGraphCache::record(Stream& stream, std::unique_ptr<Graph>& graph, const Pass& pass) {
  try {
    graph = device_.record(stream, pass);
    return true;
  } catch (const Error& error) {
    const bool refused = error.kind() == Kind::kUnsupported || error.kind() == Kind::kDevice;
    if (required_ || !refused) throw;
    log::warning("micro-batches run without CUDA graphs: ", error.what());
    way_ = Way::kDirect;
    pass();
    return false;
  }
}

void CudaGraphCache::Series::time(Stream& stream, const Pass& work) {
  const Times& at = times[begun++];
  at.begin->record(stream);
  work();
  at.end->record(stream);
}

std::optional<double> CudaGraphCache::Series::best() const {
  if (!full()) return std::nullopt;
  std::optional<double> least;
  for (const auto& [begin, end] : times) {
    const std::optional<double> seconds = end->seconds_since(*begin);
    if (!seconds) return std::nullopt;
    least = std::min(least.value_or(*seconds), *seconds);
  }
  return least;
}

int64_t room_for_documents(int64_t documents, int64_t tokens, int64_t max_length) {
  if (documents * max_length == tokens) return documents;
  const auto room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(documents)));
  return std::max(documents, std::min(room, tokens));
}

}  // namespace tokamak
