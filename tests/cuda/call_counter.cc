// A library that CUDA loads into a program by CUDA_INJECTION64_PATH. It counts by CUPTI the calls that may make the
// host wait or allocate memory: a GPU's counterpart of emulator/calls.h. The process writes the counts at its end as
// JSON to the file TOKAMAK_CALLS. Without CUPTI's consent there is no file, because missing counts would look like no
// calls. A call of the runtime is counted, and so is its call of the driver.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace {

struct Call {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId id;
  const char* name;
};

#define RUNTIME(call, version) \
  { CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##call##_##version, #call }
#define DRIVER(call) \
  { CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##call, #call }

constexpr Call kCalls[] = {
    // the host waits
    RUNTIME(cudaDeviceSynchronize, v3020),
    RUNTIME(cudaStreamSynchronize, v3020),
    RUNTIME(cudaEventSynchronize, v3020),
    RUNTIME(cudaMemcpy, v3020),
    RUNTIME(cudaMemset, v3020),
    DRIVER(cuCtxSynchronize),
    DRIVER(cuCtxSynchronize_v2),
    DRIVER(cuStreamSynchronize),
    DRIVER(cuEventSynchronize),
    DRIVER(cuMemcpy),
    DRIVER(cuMemcpyHtoD_v2),
    DRIVER(cuMemcpyDtoH_v2),
    DRIVER(cuMemcpyDtoD_v2),
    // memory of the device
    RUNTIME(cudaMalloc, v3020),
    RUNTIME(cudaMallocManaged, v6000),
    RUNTIME(cudaMallocAsync, v11020),
    RUNTIME(cudaMallocFromPoolAsync, v11020),
    RUNTIME(cudaFree, v3020),
    RUNTIME(cudaFreeAsync, v11020),
    DRIVER(cuMemAlloc_v2),
    DRIVER(cuMemAllocManaged),
    DRIVER(cuMemAllocAsync),
    DRIVER(cuMemAllocFromPoolAsync),
    DRIVER(cuMemFree_v2),
    DRIVER(cuMemFreeAsync),
    DRIVER(cuMemCreate),  // ncclMemAlloc's
    DRIVER(cuMemRelease),
    DRIVER(cuMemMap),
    DRIVER(cuMemUnmap),
    // pinned memory of the host
    RUNTIME(cudaMallocHost, v3020),
    RUNTIME(cudaHostAlloc, v3020),
    RUNTIME(cudaFreeHost, v3020),
    RUNTIME(cudaHostRegister, v4000),
    RUNTIME(cudaHostUnregister, v4000),
    DRIVER(cuMemAllocHost_v2),
    DRIVER(cuMemHostAlloc),
    DRIVER(cuMemHostAlloc_v2),
    DRIVER(cuMemFreeHost),
    DRIVER(cuMemHostRegister_v2),
    DRIVER(cuMemHostUnregister),
};

// Copies make the host wait only if its memory is pageable, and count only then.
constexpr Call kCopies[] = {
    RUNTIME(cudaMemcpyAsync, v3020),
    DRIVER(cuMemcpyAsync),
    DRIVER(cuMemcpyHtoDAsync_v2),
    DRIVER(cuMemcpyDtoHAsync_v2),
};

std::atomic<int64_t> counts[std::size(kCalls)];
std::atomic<int64_t> pageable_copies;

using GetAttribute = CUresult(void* data, CUpointer_attribute attribute, CUdeviceptr pointer);
GetAttribute* get_attribute = nullptr;

bool is_pageable(CUdeviceptr pointer) {
  CUmemorytype type{};
  return get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_ERROR_INVALID_VALUE;
}
bool is_pageable(const void* pointer) { return is_pageable(reinterpret_cast<CUdeviceptr>(pointer)); }

template <class Parameters>
const Parameters& parameters(const CUpti_CallbackData& data) {
  return *static_cast<const Parameters*>(data.functionParams);
}

bool copies_pageable(CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    if (id != CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020) return false;
    const auto& copy = parameters<cudaMemcpyAsync_v3020_params>(data);
    return is_pageable(copy.dst) || is_pageable(copy.src);
  }
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync: {
      const auto& copy = parameters<cuMemcpyAsync_params>(data);
      return is_pageable(copy.dst) || is_pageable(copy.src);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2:
      return is_pageable(parameters<cuMemcpyHtoDAsync_v2_params>(data).srcHost);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2:
      return is_pageable(parameters<cuMemcpyDtoHAsync_v2_params>(data).dstHost);
    default:
      return false;
  }
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* of) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(of);
  if (data.callbackSite != CUPTI_API_ENTER) return;
  for (size_t i = 0; i < std::size(kCalls); ++i) {
    if (kCalls[i].domain == domain && kCalls[i].id == id) ++counts[i];
  }
  if (copies_pageable(domain, id, data)) ++pageable_copies;
}

void write() {
  const char* path = std::getenv("TOKAMAK_CALLS");
  if (path == nullptr) return;
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < std::size(kCalls); ++i) {
    if (counts[i] > 0) named[kCalls[i].name] = counts[i];
  }
  if (pageable_copies > 0) named["copy of pageable memory"] = pageable_copies;
  std::ofstream out(path);
  out << "{";
  for (const auto& [name, count] : named)
    out << (&name == &named.begin()->first ? "" : ", ") << "\"" << name << "\": " << count;
  out << "}\n";
  out.close();
  if (!out) std::fprintf(stderr, "call counter: error: cannot write %s\n", path);
}

bool good(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* why = nullptr;
  if (cuptiGetResultString(result, &why) != CUPTI_SUCCESS) why = "an unknown error";
  std::fprintf(stderr, "call counter: error: %s: %s\n", what, why);
  return false;
}

bool count_from_now() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver != nullptr) get_attribute = reinterpret_cast<GetAttribute*>(dlsym(driver, "cuPointerGetAttribute"));
  if (get_attribute == nullptr) {
    std::fprintf(stderr, "call counter: error: no cuPointerGetAttribute in libcuda.so.1\n");
    return false;
  }
  CUpti_SubscriberHandle subscriber;
  if (!good(cuptiSubscribe(&subscriber, on_call, nullptr), "cuptiSubscribe")) return false;
  const auto enable = [&](const Call& call) {
    return good(cuptiEnableCallback(1, subscriber, call.domain, call.id), call.name);
  };
  for (const Call& call : kCalls) {
    if (!enable(call)) return false;
  }
  for (const Call& call : kCopies) {
    if (!enable(call)) return false;
  }
  return true;
}

}  // namespace

// The entry point that CUDA calls after loading the library. Returns 1, so that the program continues in any case.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static const bool counts_now = count_from_now() && std::atexit(write) == 0;
  static_cast<void>(counts_now);
  return 1;
}
