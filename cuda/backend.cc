// The factories through which src/ uses this module; a build without CUDA links src/backend/cuda_absent.cc instead.
#include "backend/backend.h"

#include <cstdlib>
#include <optional>

#include "backend/gpu_sizes.h"
#include "backend/plan_device.h"
#include "base/error.h"
#include "base/log.h"
#include "cuda/check.h"
#include "cuda/choose_gpu.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/nvtx.h"

namespace tokamak {

namespace {

constexpr int kOldestCapability = 8;    // Ampere: bf16 tensor cores
constexpr int kNewestMachineCode = 10;  // as in cmake/cuda.cmake; newer GPUs use PTX

std::unique_ptr<CudnnAttention> cudnn_attention(const RuntimeOptions& options, int device) {
  if (options.attention == AttentionKind::kNative) return nullptr;
  std::string why_not;
  auto cudnn = CudnnAttention::make(device, options.deterministic, &why_not);
  if (cudnn == nullptr && options.attention == AttentionKind::kCudnn) {
    fail(Kind::kDevice, str("runtime.attention is cudnn: ", why_not), "runtime.attention: auto takes what is there");
  }
  log::info("attention by ", cudnn != nullptr ? "cuDNN where it supports the case, else our own kernels"
                                              : str("our own kernels: ", why_not));
  return cudnn;
}

}  // namespace

CudaPresence cuda_presence() {
  CudaPresence presence{.built_in = true};
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) {
    presence.devices = devices;
    return presence;
  }
  cudaGetLastError();  // clears the runtime's sticky error; reported here
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0) {
    presence.missing = "no NVIDIA driver on this machine";
  } else if (error == cudaErrorInsufficientDriver) {
    presence.missing = str("the NVIDIA driver is for CUDA ", driver / 1000, ".", driver % 1000 / 10,
                           ", this program for CUDA ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10);
  } else {
    presence.missing = error == cudaErrorNoDevice || error == cudaSuccess ? "the NVIDIA driver shows no GPU"
                                                                          : str("CUDA: ", cudaGetErrorString(error));
  }
  return presence;
}

Backend make_cuda_backend(const RuntimeOptions& options, int local_rank) {
  const ShownGpus shown{cuda_presence().devices, std::getenv("CUDA_VISIBLE_DEVICES") != nullptr};
  const std::optional<int> chosen = choose_gpu(local_rank, shown, options.ranks_per_gpu);
  if (!chosen) {
    fail(Kind::kDevice,
         str("local rank ", local_rank, " has no GPU: this node shows ", shown.count, ", and TOKAMAK_RANKS_PER_GPU is ",
             options.ranks_per_gpu),
         "one rank per GPU of a node, each shown all of them or its own alone (CUDA_VISIBLE_DEVICES may hide some)");
  }
  const int index = *chosen;
  if (options.autotune == Autotune::kTrue && options.deterministic) {
    fail(Kind::kConfig, "runtime.autotune and runtime.deterministic are both true",
         "timing may choose other algorithms in another run, with other last bits");
  }
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, index));
  if (properties.major < kOldestCapability) {
    fail(Kind::kDevice,
         str("GPU ", index, ", ", properties.name, ", has compute capability ", properties.major, ".", properties.minor,
             "; ", kOldestCapability, ".0 is needed"),
         "runtime.backend: cpu runs without");
  }
  if (properties.major > kNewestMachineCode) {
    log::info(properties.name, ", compute capability ", properties.major, ".", properties.minor,
              ": the driver compiles our kernels for it at the first start, for up to a minute");
  }
  auto device = std::make_unique<CudaDevice>(index);  // first: it makes the GPU current
  device->show_to(make_nvtx_ranges());
  auto gemm = std::make_unique<CudaGemm>(options);
  const int64_t memory = device->total_bytes();
  return {std::move(device),
          std::make_unique<CudaOps>(options, memory, std::move(gemm), cudnn_attention(options, index))};
}

Backend plan_cuda_backend(const RuntimeOptions& options) {
  return make_plan_backend({.description = "a GPU",
                            .uses_host_memory = false,
                            .startup_bytes = kGpuStartupBytes,
                            .reserve_bytes = kGpuReserveBytes},
                           std::make_unique<CudaOps>(options, kPlannedGpuMemory, nullptr, nullptr));
}

}  // namespace tokamak
