#include "cuda/gemm/tuning.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"

namespace tokamak {

namespace {

constexpr int kRuns = 5;    // timed together
constexpr int kRounds = 3;  // the best counts

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

  cudaEvent_t begin = nullptr, end = nullptr;
};

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};

// Milliseconds of kRuns runs, or infinity if the algorithm fails.
float time_of(const std::function<cublasStatus_t()>& run, const EventPair& timer, cudaStream_t stream) {
  if (run() != CUBLAS_STATUS_SUCCESS) return std::numeric_limits<float>::infinity();
  float best = std::numeric_limits<float>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    TOKAMAK_CUDA(cudaEventRecord(timer.begin, stream));
    for (int i = 0; i < kRuns; ++i) {
      if (run() != CUBLAS_STATUS_SUCCESS) return std::numeric_limits<float>::infinity();
    }
    TOKAMAK_CUDA(cudaEventRecord(timer.end, stream));
    TOKAMAK_CUDA(cudaEventSynchronize(timer.end));
    float milliseconds = 0;
    TOKAMAK_CUDA(cudaEventElapsedTime(&milliseconds, timer.begin, timer.end));
    best = std::min(best, milliseconds);
  }
  return best;
}

std::string text_with_time(const cublasLtMatmulAlgo_t& algorithm, float milliseconds) {
  return str(significant(static_cast<double>(milliseconds) / kRuns, 3), " ms (", text_of(algorithm), ")");
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
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<size_t>(output_bytes)) != cudaSuccess) {
    cudaGetLastError();  // clears the runtime's sticky error
    log::warning("runtime.autotune: no memory to time the GEMM ", key, "; it runs as cuBLASLt's heuristic says");
    return algorithms.front();
  }
  const std::unique_ptr<void, Free> owner(memory);
  GemmOperands scratch = operands;
  scratch.output = memory;
  if (operands.added == operands.output) scratch.added = memory;

  const EventPair timer;
  size_t best = 0;
  float least = std::numeric_limits<float>::infinity(), first = 0;
  for (size_t i = 0; i < algorithms.size(); ++i) {
    const float time = time_of([&] { return run(algorithms[i], scratch); }, timer, stream);
    if (i == 0) first = time;
    if (time < least) {
      least = time;
      best = i;
    }
  }
  if (std::isinf(least)) return algorithms.front();  // its own run will report the error
  log::info("GEMM ", key, ": algorithm ", best + 1, " of ", algorithms.size(), ", ",
            text_with_time(algorithms[best], least), ", ",
            fixed(100.0 * (static_cast<double>(first) / static_cast<double>(least) - 1.0), 1),
            "% faster than the heuristic's, ", text_with_time(algorithms.front(), first));
  // cuBLAS documents that an algorithm's bytes may be saved and restored for the same library version.
  choices_.keep(key, {reinterpret_cast<const char*>(&algorithms[best]), sizeof(cublasLtMatmulAlgo_t)});
  return algorithms[best];
}

}  // namespace tokamak
