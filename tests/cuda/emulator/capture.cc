#include "capture.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "calls.h"
#include "emulator.h"

namespace {

struct Node {
  emulator::Work work;
  emulator::After after;
};

struct Capture {
  uint64_t number;
  cudaStream_t origin;
  bool valid = true;
  std::vector<Node> nodes = {};
  std::map<cudaStream_t, emulator::After> heads = {};  // the latest work of each stream that has joined
};

// The capture of this thread.
std::unique_ptr<Capture>& current() {
  static thread_local std::unique_ptr<Capture> capture;
  return capture;
}

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

void run(const std::vector<Node>& nodes) {
  const char* const order = std::getenv("TOKAMAK_EMULATOR_ORDER");
  const bool last_first = order != nullptr && std::string_view(order) == "reverse";
  std::vector<size_t> missing(nodes.size());
  std::vector<std::vector<size_t>> followers(nodes.size());
  std::set<size_t> ready;
  for (size_t n = 0; n < nodes.size(); ++n) {
    missing[n] = nodes[n].after.size();
    for (const size_t before : nodes[n].after) followers[before].push_back(n);
    if (missing[n] == 0) ready.insert(n);
  }
  while (!ready.empty()) {
    auto next = last_first ? std::prev(ready.end()) : ready.begin();
    if (std::mt19937* const random = emulator::random_order()) {
      std::advance(next, static_cast<std::ptrdiff_t>((*random)() % ready.size()));
    }
    const size_t n = *next;
    ready.erase(next);
    nodes[n].work();
    for (const size_t follower : followers[n]) {
      if (--missing[follower] == 0) ready.insert(follower);
    }
  }
}

// Whether what `stream` has recorded comes before the end of the origin stream.
bool joined(const Capture& capture, cudaStream_t stream) {
  std::set<size_t> before;
  const std::function<void(size_t)> collect = [&](size_t n) {
    if (!before.insert(n).second) return;
    for (const size_t earlier : capture.nodes[n].after) collect(earlier);
  };
  for (const size_t n : capture.heads.at(capture.origin)) collect(n);
  for (const size_t n : capture.heads.at(stream)) {
    if (before.count(n) == 0) return false;
  }
  return true;
}

}  // namespace

struct emulator_graph {
  std::vector<Node> nodes;
};

namespace emulator {

bool captures(cudaStream_t stream) { return current() != nullptr && current()->heads.count(stream) == 1; }
bool a_stream_captures() { return current() != nullptr; }
uint64_t capture_number() { return current() == nullptr ? 0 : current()->number; }

void record(cudaStream_t stream, Work work) {
  After& head = current()->heads.at(stream);
  current()->nodes.push_back({std::move(work), head});
  head = {current()->nodes.size() - 1};
}
After recorded(cudaStream_t stream) { return current()->heads.at(stream); }
void join(cudaStream_t stream, const After& after) {
  After& head = current()->heads[stream];
  std::set<size_t> all(head.begin(), head.end());
  all.insert(after.begin(), after.end());
  head.assign(all.begin(), all.end());
}

cudaError_t spoil(cudaError_t error) {
  current()->valid = false;
  return error;
}
cudaError_t refuse_while_capturing() {
  return a_stream_captures() ? spoil(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

}  // namespace emulator

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  static uint64_t made = 0;
  if (mode != cudaStreamCaptureModeThreadLocal) {
    std::fprintf(stderr, "emulator: a capture that other threads' allocations would spoil\n");
    std::abort();
  }
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (emulator::captures(stream)) return cudaErrorIllegalState;
  if (emulator::a_stream_captures()) {
    std::fprintf(stderr, "emulator: two captures at a time\n");
    std::abort();
  }
  current() = std::make_unique<Capture>(Capture{.number = ++made, .origin = stream});
  current()->heads[stream] = {};
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!emulator::a_stream_captures()) return cudaErrorIllegalState;
  if (current()->origin != stream) return emulator::spoil(cudaErrorStreamCaptureUnmatched);
  const std::unique_ptr<Capture> capture = std::move(current());
  if (!capture->valid || is_set("TOKAMAK_EMULATOR_NO_CAPTURE")) return cudaErrorStreamCaptureInvalidated;
  for (const auto& [other, head] : capture->heads) {
    if (!joined(*capture, other)) return cudaErrorStreamCaptureUnjoined;
  }
  *graph = new emulator_graph{std::move(capture->nodes)};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  emulator::count_call("cudaGraphInstantiate");
  *exec = new emulator_graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return cudaGraphDestroy(exec); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (emulator::captures(stream)) return emulator::spoil(cudaErrorStreamCaptureUnsupported);
  emulator::count_call("cudaGraphLaunch");
  emulator::enqueue(stream, [nodes = exec->nodes] { run(nodes); });  // it may be destroyed before it has run
  return cudaSuccess;
}
