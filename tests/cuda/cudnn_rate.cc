// How fast cuDNN's attention is by itself: its graphs between CUDA events, without our operations around them. Its
// tensors are its own too, (B, heads, T, D) each in one piece, since that our Q, K and V lie interleaved is our choice:
// what it costs is part of what scripts/gpu_check holds against this rate.
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/attention_cudnn_graph.h"
#include "cuda/attention_cudnn_library.h"

using namespace tokamak;

namespace {

constexpr int kUsage = 2, kSkipped = 77;
constexpr int kRounds = 9;
constexpr float kMillisecondsPerRound = 20;  // so that the launch of the first call does not count
constexpr int kMostCalls = 200;

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(Kind::kDevice, str("CUDA: ", cudaGetErrorString(error), " from ", call));
}
void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) fail(Kind::kDevice, str("cuDNN: ", cudnnGetErrorString(status), " from ", call));
}

struct Freed {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<std::byte, Freed>;

DeviceMemory allocate(int64_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1))), "cudaMalloc");
  return DeviceMemory(static_cast<std::byte*>(memory));
}

// bf16 values of [-1, 1): what the GPU's power, and so its clock, depends on.
DeviceMemory random_bf16(int64_t count) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  uint32_t state = 1;
  for (uint16_t& value : values) {
    state = state * 1664525u + 1013904223u;
    const float x = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    value = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  }
  DeviceMemory memory = allocate(2 * count);
  check(cudaMemcpy(memory.get(), values.data(), 2 * values.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  return memory;
}

class Timer {
 public:
  Timer() {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Seconds of one call, the median of rounds.
  template <class Call>
  double median(const Call& call) {
    milliseconds(call, 3);  // what is made or loaded at the first call is there after this
    const float one = milliseconds(call, 3) / 3;
    const int calls = std::clamp(static_cast<int>(kMillisecondsPerRound / one), 1, kMostCalls);
    std::vector<float> rounds;
    for (int i = 0; i < kRounds; ++i) rounds.push_back(milliseconds(call, calls) / static_cast<float>(calls));
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    return 1e-3 * static_cast<double>(rounds[kRounds / 2]);
  }

 private:
  template <class Call>
  float milliseconds(const Call& call, int calls) {
    check(cudaEventRecord(begin_), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) call();
    check(cudaEventRecord(end_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin_, end_), "cudaEventElapsedTime");
    return std::max(elapsed, 1e-6f);
  }

  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// "NAME": {...} of one pass.
std::string timed(const AttentionGraphSpec& spec, const CudnnTarget& target, const AttentionPointers& pointers) {
  std::string why_not;
  const auto graph = AttentionGraph::build(spec, target, &why_not);
  if (graph == nullptr) fail(Kind::kDevice, str("cuDNN does not take it: ", why_not));
  const DeviceMemory workspace = allocate(graph->workspace_bytes());
  const double seconds = Timer().median([&] { graph->run(target.handle, pointers, workspace.get()); });
  // As in bench --ops: two products forward and five backward, over the pairs that causality leaves.
  const double pairs =
      0.5 * static_cast<double>(spec.documents.tokens()) * static_cast<double>(spec.documents.length + 1);
  const double flops = (spec.backward ? 5 : 2) * 2 * pairs * static_cast<double>(spec.heads.q_width());
  return str("\"attention", spec.backward ? "_backward" : "", "\": {\"seconds\": ", seconds,
             ", \"tflops\": ", flops / seconds / 1e12, ", \"engine\": \"", graph->engine(), "\"}");
}

std::string rates(const DocumentBatch& documents, const HeadLayout& heads) {
  CudnnTarget target;
  check(cudnnCreate(&target.handle), "cudnnCreate");
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  target.compute_capability = 10 * device.major + device.minor;

  const int64_t tokens = documents.tokens();
  const DeviceMemory qkv = random_bf16(tokens * heads.qkv_width()), dqkv = allocate(2 * tokens * heads.qkv_width()),
                     out = allocate(2 * tokens * heads.q_width()), dout = random_bf16(tokens * heads.q_width()),
                     lse = allocate(4 * tokens * heads.q_heads);
  const AttentionPointers pointers{.qkv = qkv.get(),
                                   .out = out.get(),
                                   .lse = lse.get(),
                                   .dout = dout.get(),
                                   .dqkv = dqkv.get(),
                                   .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim)))};
  AttentionGraphSpec spec{documents, heads};
  spec.separate_tensors = true;
  const std::string forward = timed(spec, target, pointers);  // fills out and lse for what follows
  spec.backward = true;
  const std::string backward = timed(spec, target, pointers);
  cudnnDestroy(target.handle);
  return str("{\"device\": \"", device.name, "\", \"cudnn\": ", cudnnGetVersion(), ", ", forward, ", ", backward, "}");
}

std::string missing() {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    return str("no GPU (", error != cudaSuccess ? cudaGetErrorString(error) : "the driver shows none", ")");
  }
  std::string why_not;
  return open_cudnn(&why_not) ? "" : why_not;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t numbers[5] = {};
  bool good = argc == 6;
  for (int i = 1; good && i < argc; ++i) good = (numbers[i - 1] = std::atoll(argv[i])) > 0;
  if (!good) {
    std::fprintf(stderr, "usage: cudnn_rate DOCUMENTS LENGTH QUERY_HEADS KEY_HEADS HEAD_DIM\n");
    return kUsage;
  }
  if (const std::string why = missing(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return kSkipped;
  }
  try {
    std::printf("%s\n", rates({numbers[0], numbers[1]}, {numbers[2], numbers[3], numbers[4]}).c_str());
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
