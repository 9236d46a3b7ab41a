// Defines the cuDNN functions that we and cudnn-frontend call, as forwarders to the library's own, so nothing links
// libcudnn. cudnn-frontend can load libraries itself, but it then also loads a libcudart.so (of CUDA 12 rather than 13,
// if both are installed), while our program links the CUDA runtime statically.
#include "cuda/attention/cudnn_library.h"

#include <cudnn.h>
#include <dlfcn.h>

#include "base/error.h"

namespace tokamak {
namespace {

// The oldest version that writes Stats in any layout (see attention/cudnn_graph.h).
constexpr size_t kOldest = 91200;

void* library() {
  // Never closed: its threads and handles may outlive us.
  static void* const opened = dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_LOCAL);
  return opened;
}

template <class Function>
Function* find(Function*, const char* name) {
  void* symbol = dlsym(library(), name);
  TOKAMAK_CHECK(symbol != nullptr, "libcudnn.so.9 has no ", name);
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

bool open_cudnn(std::string* why_not) {
  if (library() == nullptr) {
    *why_not = "no libcudnn.so.9 on this machine";
    return false;
  }
  if (cudnnGetVersion() < kOldest) {
    *why_not = str("cuDNN ", version_text(cudnnGetVersion()), " is older than ", version_text(kOldest));
    return false;
  }
  return true;
}

std::string version_text(size_t version) { return str(version / 10000, ".", version / 100 % 100, ".", version % 100); }

std::string nvrtc_state() {
  // scripts/package.sh finds this name in the program's strings and bundles the library.
  static const bool opens = dlopen(TOKAMAK_NVRTC, RTLD_LAZY | RTLD_LOCAL) != nullptr;
  return opens ? TOKAMAK_NVRTC " opens" : TOKAMAK_NVRTC " does not open, which cuDNN compiles its kernels with";
}

}  // namespace tokamak

#define TOKAMAK_FORWARD(function, ...)                                                                   \
  static auto* const forward_to = ::tokamak::find(static_cast<decltype(&function)>(nullptr), #function); \
  return forward_to(__VA_ARGS__)

extern "C" {

size_t cudnnGetVersion() { TOKAMAK_FORWARD(cudnnGetVersion); }
const char* cudnnGetErrorString(cudnnStatus_t status) { TOKAMAK_FORWARD(cudnnGetErrorString, status); }
void cudnnGetLastErrorString(char* message, size_t size) { TOKAMAK_FORWARD(cudnnGetLastErrorString, message, size); }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { TOKAMAK_FORWARD(cudnnCreate, handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { TOKAMAK_FORWARD(cudnnDestroy, handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  TOKAMAK_FORWARD(cudnnSetStream, handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  TOKAMAK_FORWARD(cudnnGetStream, handle, stream);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  TOKAMAK_FORWARD(cudnnBackendCreateDescriptor, type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  TOKAMAK_FORWARD(cudnnBackendDestroyDescriptor, descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  TOKAMAK_FORWARD(cudnnBackendFinalize, descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  TOKAMAK_FORWARD(cudnnBackendSetAttribute, descriptor, name, type, count, elements);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t asked, int64_t* count,
                                       void* elements) {
  TOKAMAK_FORWARD(cudnnBackendGetAttribute, descriptor, name, type, asked, count, elements);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  TOKAMAK_FORWARD(cudnnBackendExecute, handle, plan, pack);
}

}  // extern "C"
