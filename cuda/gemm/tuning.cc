#include "cuda/gemm/tuning.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"

namespace tokamak {

namespace {

constexpr int kRuns = 5;    // runs of an algorithm in a round, timed together
constexpr int kRounds = 3;  // the shortest decides; each has all algorithms, since a GPU at its power limit slows down

std::string cache_path(const RuntimeOptions& options) {
  int device = 0;
  TOKAMAK_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, device));
  std::string name = properties.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  const char* home = std::getenv("HOME");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache == nullptr && home == nullptr) return "";
  const std::string root = cache != nullptr ? std::string(cache) : str(home, "/.cache");
  return str(root, "/tokamak/gemm-", name, "-", properties.multiProcessorCount, "-", cublasLtGetVersion(),
             options.tf32 ? "-tf32" : "",
             options.nccl_max_ctas > 0 ? str("-without-", options.nccl_max_ctas, "-SMs") : "");
}

// The events before and after timed work.
struct EventPair {
  EventPair() {
    TOKAMAK_CUDA(cudaEventCreate(&begin));
    TOKAMAK_CUDA(cudaEventCreate(&end));
  }
  ~EventPair() {
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  float milliseconds() const {
    float between = 0;
    TOKAMAK_CUDA(cudaEventElapsedTime(&between, begin, end));
    return between;
  }

  cudaEvent_t begin = nullptr, end = nullptr;
};

// Device memory for the time of tuning.
class TemporaryMemory {
 public:
  explicit TemporaryMemory(size_t bytes) : bytes_(bytes) {
    if (cudaMalloc(&memory_, bytes) == cudaSuccess) return;
    cudaGetLastError();  // clears the runtime's sticky error
    memory_ = nullptr;
  }
  ~TemporaryMemory() { cudaFree(memory_); }
  TemporaryMemory(const TemporaryMemory&) = delete;
  TemporaryMemory& operator=(const TemporaryMemory&) = delete;

  void* data() const { return memory_; }  // null: too little device memory
  size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

size_t cache_bytes() {
  int device = 0;
  TOKAMAK_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, device));
  return static_cast<size_t>(properties.l2CacheSize);
}

// Times runs one by one. Before each, it overwrites memory of the L2 cache's size, which evicts the operands.
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream), evicting_(cache_bytes()) {}

  // Milliseconds of kRuns runs after one that is not timed, or infinity if the algorithm fails.
  float time_of(const std::function<cublasStatus_t()>& run) {
    constexpr float kFailed = std::numeric_limits<float>::infinity();
    if (run() != CUBLAS_STATUS_SUCCESS) return kFailed;
    for (const EventPair& timed : events_) {
      evict();
      TOKAMAK_CUDA(cudaEventRecord(timed.begin, stream_));
      if (run() != CUBLAS_STATUS_SUCCESS) return kFailed;
      TOKAMAK_CUDA(cudaEventRecord(timed.end, stream_));
    }
    TOKAMAK_CUDA(cudaEventSynchronize(events_.back().end));
    float sum = 0;
    for (const EventPair& timed : events_) sum += timed.milliseconds();
    return sum;
  }

 private:
  void evict() {
    if (evicting_.data() == nullptr) return;  // no memory for it: timed with a warm cache
    TOKAMAK_CUDA(cudaMemsetAsync(evicting_.data(), 0, evicting_.bytes(), stream_));
  }

  cudaStream_t stream_;
  TemporaryMemory evicting_;
  std::array<EventPair, kRuns> events_;
};

std::string text_with_time(const cublasLtMatmulAlgo_t& algorithm, float milliseconds) {
  return str(significant(double(milliseconds) / kRuns, 3), " ms (", text_of(algorithm), ")");
}

}  // namespace

GemmTuning::GemmTuning(const RuntimeOptions& options) : choices_(cache_path(options), sizeof(cublasLtMatmulAlgo_t)) {}

cublasLtMatmulAlgo_t GemmTuning::fastest(const GemmProblem& problem,
                                         const std::vector<cublasLtMatmulAlgo_t>& algorithms, int64_t output_bytes,
                                         const GemmOperands& operands, const Run& run, cudaStream_t stream) {
  const std::string key = text_of(problem);
  if (const auto known = choices_.find(key)) {
    cublasLtMatmulAlgo_t algorithm;
    std::memcpy(&algorithm, known->data(), sizeof(algorithm));
    return algorithm;
  }
  GemmOperands timed = operands;
  std::optional<TemporaryMemory> output;
  if (operands.beta != 0 && operands.added == operands.output) {
    output.emplace(static_cast<size_t>(output_bytes));
    if (output->data() == nullptr) {
      log::warning("runtime.autotune: no memory to time the GEMM ", key, "; it runs as cuBLASLt's heuristic says");
      return algorithms.front();
    }
    timed.output = output->data();
    timed.added = output->data();
  }

  TOKAMAK_CUDA(cudaDeviceSynchronize());  // another stream's work would take time from the first algorithms
  Timer timer(stream);
  std::vector<float> times(algorithms.size(), std::numeric_limits<float>::infinity());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < algorithms.size(); ++i) {
      if (round > 0 && std::isinf(times[i])) continue;  // it fails
      times[i] = std::min(times[i], timer.time_of([&] { return run(algorithms[i], timed); }));
    }
  }
  const auto fastest = std::min_element(times.begin(), times.end());
  const auto best = static_cast<size_t>(fastest - times.begin());
  const float least = *fastest, first = times.front();
  if (std::isinf(least)) return algorithms.front();  // the GEMM's real run will report the error
  log::info("GEMM ", key, ": algorithm ", best + 1, " of ", algorithms.size(), ", ",
            text_with_time(algorithms[best], least), ", ", fixed(100.0 * (double(first) / double(least) - 1.0), 1),
            "% faster than the heuristic's, ", text_with_time(algorithms.front(), first));
  // cuBLAS documents that an algorithm's bytes may be saved and restored for the same library version.
  choices_.keep(key, {reinterpret_cast<const char*>(&algorithms[best]), sizeof(cublasLtMatmulAlgo_t)});
  return algorithms[best];
}

}  // namespace tokamak
