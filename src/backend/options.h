// Runtime options: backend, threads, precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class BackendKind { kAuto, kCpu, kCuda };
inline const std::vector<std::string>& enum_names(BackendKind) {
  static const std::vector<std::string> names = {"auto", "cpu", "cuda"};
  return names;
}

enum class AttentionKind { kAuto, kNative, kCudnn };
inline const std::vector<std::string>& enum_names(AttentionKind) {
  static const std::vector<std::string> names = {"auto", "native", "cudnn"};
  return names;
}

enum class CudaGraphs { kAuto, kOn, kOff };
inline const std::vector<std::string>& enum_names(CudaGraphs) {
  static const std::vector<std::string> names = {"auto", "on", "off"};
  return names;
}

enum class Autotune { kAuto, kTrue, kFalse };
inline const std::vector<std::string>& enum_names(Autotune) {
  static const std::vector<std::string> names = {"auto", "true", "false"};
  return names;
}

// The number of ranks that share a GPU: TOKAMAK_RANKS_PER_GPU, which only tests set; default 1. Error(kConfig) unless
// it is a whole number of at least 1.
int64_t ranks_per_gpu_variable();

struct RuntimeOptions {
  BackendKind backend = BackendKind::kAuto;
  AttentionKind attention = AttentionKind::kAuto;
  bool tf32 = false;
  Autotune autotune = Autotune::kAuto;
  CudaGraphs cuda_graphs = CudaGraphs::kAuto;
  AutoInt threads_per_rank;
  bool deterministic = false;
  int64_t ranks_per_gpu = ranks_per_gpu_variable();  // not a key of the config
  int64_t nccl_max_ctas = 0;
  int64_t nccl_warm_up = int64_t{64} << 20;
  std::string machine = "auto";

  bool autotunes() const { return autotune == Autotune::kTrue || (autotune == Autotune::kAuto && !deterministic); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("backend", backend, "device of the computation; auto uses the GPU if there is one, else the CPU");
    v("attention", attention,
      "attention kernels of a GPU; auto uses cuDNN if it is installed and supports the case, else Tokamak's own, "
      "which are slower");
    v("tf32", tf32, "on a GPU, compute GEMMs of f32 tensors in TF32: several times faster, with 10 bits of mantissa");
    v("autotune", autotune,
      "on a GPU, time cuBLASLt's algorithms per GEMM and cache the choice: a slower first step, later ones 1 to 4 % "
      "faster; auto: unless deterministic");
    v("cuda_graphs", cuda_graphs,
      "launch each micro-batch as a CUDA graph, on one rank only: same bits, faster for small models; auto times "
      "both ways in the first steps");
    v("threads_per_rank", threads_per_rank,
      "CPU threads of each rank; more than its share of the cores slows every rank of the node; auto: an equal share");
    v("deterministic", deterministic,
      "on a GPU, the same bits from run to run; attention's backward is slower and autotune is off. The CPU is "
      "always deterministic");
    v("nccl_max_ctas", nccl_max_ctas,
      "thread blocks (SMs) that one NCCL collective may use; fewer leave more SMs to GEMMs and slow the transfers; "
      "0: NCCL chooses");
    v("nccl_warm_up", nccl_warm_up,
      "bytes of the first collectives of each NCCL communicator, which take its memory before the plan is checked; "
      "0: that memory is estimated");
    v("machine", machine,
      "hardware rates behind the auto keys. auto: the table's row of this device; NAME: another row; FILE.json: "
      "measured by tokamak bench, the most accurate");
  }
};

enum class Precision { kBF16, kF32 };
inline const std::vector<std::string>& enum_names(Precision) {
  static const std::vector<std::string> names = {"bf16", "f32"};
  return names;
}

struct PrecisionOptions {
  Precision compute = Precision::kBF16;
  Precision reduce = Precision::kF32;

  template <class Visitor>
  void fields(Visitor& v) {
    v("compute", compute,
      "dtype of gathered weights, activations and their gradients; f32, for tests, takes twice the memory and "
      "several times the time");
    v("reduce", reduce,
      "dtype of gradients sent between ranks; sums are f32. bf16 halves the traffic inside a node and rounds each "
      "contribution; between nodes f32 is sent");
  }
};

}  // namespace tokamak
