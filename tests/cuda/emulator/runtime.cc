// The CUDA runtime's calls on the emulator: one device, or as many as TOKAMAK_EMULATOR_DEVICES says, of which a process
// uses one.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "calls.h"
#include "capture.h"
#include "faults.h"
#include "streams.h"

namespace {

constexpr size_t kTotalBytes = size_t{8} << 30;

// Pinned host memory: copies from and to any other host memory make the host wait. Any thread may take some.
std::map<const std::byte*, size_t>& pinned() {
  static std::map<const std::byte*, size_t> all;
  return all;
}
std::mutex& of_pinned() {
  static std::mutex mutex;
  return mutex;
}
bool is_pinned(const void* memory) {
  const std::lock_guard lock(of_pinned());
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = pinned().upper_bound(at);
  if (after == pinned().begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return at < begin + bytes;
}

}  // namespace

cudaError_t cudaGetLastError() { return emulator::fault_of_device(); }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress  ? "an illegal memory access was encountered"
         : error == cudaErrorLaunchFailure ? "unspecified launch failure"
                                           : "an error";
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    default:
      return "cudaError";
  }
}
cudaError_t cudaGetDeviceCount(int* count) {
  const char* devices = std::getenv("TOKAMAK_EMULATOR_DEVICES");
  *count = devices == nullptr ? 1 : std::atoi(devices);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"NVIDIA H100, emulated", kTotalBytes, 9, 0, 4};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  return device < count ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaMalloc");
  *memory = bytes > kTotalBytes || emulator::fault_of_memory() != cudaSuccess ? nullptr : emulator::allocate(bytes);
  return *memory == nullptr && bytes > 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaFree");
  emulator::run_all_streams();
  emulator::release(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaMallocHost");
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*memory, 0xa5, bytes);  // CUDA does not promise zeros
  const std::lock_guard lock(of_pinned());
  pinned()[static_cast<std::byte*>(*memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaFreeHost");
  emulator::run_all_streams();
  const std::lock_guard lock(of_pinned());
  pinned().erase(static_cast<std::byte*>(memory));
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  *available = *total = kTotalBytes;
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaMemset");
  const emulator::Access access;
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  emulator::enqueue(stream, [=] {
    const emulator::Access access;
    std::memset(memory, value, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const void* host = kind == cudaMemcpyHostToDevice ? from : kind == cudaMemcpyDeviceToHost ? to : nullptr;
  const bool pageable = host != nullptr && !is_pinned(host);
  if (pageable && emulator::captures(stream)) return emulator::spoil(cudaErrorStreamCaptureUnsupported);
  if (pageable) emulator::count_call("copy of pageable memory");
  const auto copy = [=](const void* source) {
    const emulator::Access access;
    std::memcpy(to, source, bytes);
  };
  if (pageable && host == from) {  // read before the call returns
    const auto* bytes_of = static_cast<const std::byte*>(from);
    emulator::enqueue(stream, [=, read = std::vector<std::byte>(bytes_of, bytes_of + bytes)] { copy(read.data()); });
  } else {
    emulator::enqueue(stream, [=] { copy(from); });
    if (pageable) emulator::run_all(stream);
  }
  return cudaSuccess;
}
