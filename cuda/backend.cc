// The factories by which src/ reaches this room; a build without CUDA has src/backend/cuda_absent.cc in its place.
#include "backend/backend.h"

#include "base/error.h"
#include "cuda/check.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"

namespace tokamak {

namespace {

constexpr int kOldestCapability = 8;  // Ampere: bf16 tensor cores

}  // namespace

CudaPresence cuda_presence() {
  CudaPresence presence{.built_in = true};
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) {
    presence.devices = devices;
    return presence;
  }
  cudaGetLastError();  // the runtime keeps it, and it is told here
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
  const int devices = cuda_presence().devices;
  if (local_rank >= devices) {
    fail(Kind::kDevice, str("local rank ", local_rank, " has no GPU: this node shows ", devices),
         "one rank per GPU; CUDA_VISIBLE_DEVICES limits what is shown");
  }
  cudaDeviceProp properties;
  TOKAMAK_CUDA(cudaGetDeviceProperties(&properties, local_rank));
  if (properties.major < kOldestCapability) {
    fail(Kind::kDevice,
         str("GPU ", local_rank, ", ", properties.name, ", has compute capability ", properties.major, ".",
             properties.minor, "; ", kOldestCapability, ".0 is needed"),
         "runtime.backend: cpu runs without");
  }
  return {std::make_unique<CudaDevice>(local_rank), std::make_unique<CudaOps>(options, local_rank)};
}

}  // namespace tokamak
