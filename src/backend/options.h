// Options of the machine side: which backend, how many threads, which precision.
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

  bool autotunes() const { return autotune == Autotune::kTrue || (autotune == Autotune::kAuto && !deterministic); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("backend", backend, "where to compute; auto takes a GPU where one is, else the CPU");
    v("attention", attention,
      "on a GPU: auto takes cuDNN where it is there and supports the case, else our own kernels; the CPU has one kind");
    v("tf32", tf32, "on a GPU, products of f32 tensors in TF32: 10 bits of mantissa, several times the speed");
    v("autotune", autotune,
      "on a GPU, time cuBLASLt's algorithms for each product at its first use and keep the choice in ~/.cache/tokamak: "
      "a "
      "slower first step, 1 to 4 % faster ones after it; auto: unless deterministic");
    v("cuda_graphs", cuda_graphs,
      "on a GPU, record a micro-batch's work once and launch it as one, which small models gain by: the same bits; "
      "auto "
      "times both ways in the first steps; for one rank, more train without");
    v("threads_per_rank", threads_per_rank, "CPU threads of each rank; auto shares the node's cores among its ranks");
    v("deterministic", deterministic,
      "on a GPU, the same bits from run to run, at some cost in attention's gradient; the CPU's always are, for any "
      "thread count");
    v("ranks_per_gpu", ranks_per_gpu,
      "ranks that share a GPU: local rank r computes on GPU r / ranks_per_gpu; above 1 only for tests, at a small part "
      "of the speed");
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
    v("compute", compute, "dtype of gathered weights, activations and their gradients; f32 is for tests");
    v("reduce", reduce, "dtype in which gradients cross the network; sums are formed in f32 either way");
  }
};

}  // namespace tokamak
