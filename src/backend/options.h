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

struct RuntimeOptions {
  BackendKind backend = BackendKind::kAuto;
  AttentionKind attention = AttentionKind::kAuto;
  bool tf32 = false;
  Autotune autotune = Autotune::kAuto;
  CudaGraphs cuda_graphs = CudaGraphs::kAuto;
  AutoInt threads_per_rank;
  bool deterministic = false;
  int64_t ranks_per_gpu = 1;
  int64_t nccl_max_ctas = 0;
  int64_t nccl_warm_up = int64_t{64} << 20;
  std::string machine = "auto";

  bool autotunes() const { return autotune == Autotune::kTrue || (autotune == Autotune::kAuto && !deterministic); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("backend", backend, "where to compute; auto uses the GPU if there is one, else the CPU");
    v("attention", attention,
      "on a GPU: auto uses cuDNN if it is installed and supports the case, else Tokamak's own kernels, which are "
      "slower; the CPU has one implementation");
    v("tf32", tf32, "on a GPU, compute GEMMs of f32 tensors in TF32: several times the speed, 10 bits of mantissa");
    v("autotune", autotune,
      "on a GPU, time cuBLASLt's algorithms for each GEMM at its first use and cache the choice in "
      "~/.cache/tokamak: the first step is slower, later ones 1 to 4 % faster; auto: unless deterministic, with "
      "which true is refused");
    v("cuda_graphs", cuda_graphs,
      "on a GPU, capture a micro-batch's work in a CUDA graph and launch it at once: same bits, faster for small "
      "models, no gain for large ones; auto times both ways in the first steps; several ranks run without graphs, "
      "and on is refused there");
    v("threads_per_rank", threads_per_rank,
      "CPU threads of each rank; more than its share of the cores slows every rank of the node; auto: an equal "
      "share");
    v("deterministic", deterministic,
      "on a GPU, the same bits from run to run; attention's gradient is slower and autotune off. Several GPUs sum "
      "along NCCL's rings (NCCL_ALGO=Ring), never in a switch, which is slower. The CPU is always deterministic, for any "
      "thread count");
    v("ranks_per_gpu", ranks_per_gpu,
      "ranks that share a GPU: local rank r uses GPU r / ranks_per_gpu; above 1 for tests only, at a fraction of "
      "the speed");
    v("nccl_max_ctas", nccl_max_ctas,
      "thread blocks, hence SMs, that one NCCL collective may use; GEMMs are chosen for the remaining SMs. Fewer "
      "leave more SMs to GEMMs and slow the transfers; 0: NCCL chooses, and GEMMs are chosen for all SMs");
    v("nccl_warm_up", nccl_warm_up,
      "bytes of each NCCL communicator's first collectives, which make it connect and take its memory before the plan "
      "is checked; 0: none, an estimate of that memory is kept free instead, and the first step connects");
    v("machine", machine,
      "whose rates the choices of activation_checkpoint.mode: auto and parallelism.keep_gathered: auto go by: auto is "
      "the hardware table's row of this GPU or of a CPU; a row's name, as tokamak plan --gpu takes it; or the .json file "
      "of tokamak bench calibrate, which says most about this machine");
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
      "dtype of gathered weights, activations and their gradients; f32 takes twice the memory and several times the "
      "time, for tests");
    v("reduce", reduce,
      "dtype in which gradients travel between ranks; sums are always f32. bf16 halves the traffic inside a node "
      "and rounds each contribution; between nodes, sums travel in f32");
  }
};

}  // namespace tokamak
