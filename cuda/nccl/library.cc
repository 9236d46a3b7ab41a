// Defines the NCCL functions that we call, as forwarders to the library's own, so nothing links libnccl.
// (As cuda/attention/cudnn_library.cc does for cuDNN.)
#include "cuda/nccl/library.h"

#include <dlfcn.h>
#include <nccl.h>

#include "base/error.h"

namespace tokamak {
namespace {

constexpr const char* kName = "libnccl.so.2";
constexpr int kOldest = 21903;  // has ncclMemAlloc and ncclCommRegister

void* library() {
  // Never closed: its threads may outlive us.
  static void* const opened = dlopen(kName, RTLD_LAZY | RTLD_LOCAL);
  return opened;
}

template <class Function>
Function* find(Function*, const char* name) {
  void* symbol = dlsym(library(), name);
  TOKAMAK_CHECK(symbol != nullptr, kName, " has no ", name);
  return reinterpret_cast<Function*>(symbol);
}

int version() {
  int code = 0;
  ncclGetVersion(&code);
  return code;
}

std::string text_of(int code) { return str(code / 10000, ".", code % 10000 / 100, ".", code % 100); }

}  // namespace

bool open_nccl(std::string* why_not) {
  if (library() == nullptr) {
    *why_not = str("no ", kName, " on this machine");
    return false;
  }
  if (version() < kOldest) {
    *why_not = str("NCCL ", text_of(version()), " is older than ", text_of(kOldest));
    return false;
  }
  return true;
}

std::string nccl_version() { return text_of(version()); }

// Looked up by name: older headers declare neither the functions nor ncclWindow_t, which is a pointer.
ncclResult_t register_window(ncclComm_t comm, void* memory, size_t bytes, void** window) {
  constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC
  using Register = ncclResult_t(ncclComm_t, void*, size_t, void**, int);
  static auto* const call = reinterpret_cast<Register*>(dlsym(library(), "ncclCommWindowRegister"));
  return call == nullptr ? ncclSuccess : call(comm, memory, bytes, window, kSymmetric);
}
ncclResult_t deregister_window(ncclComm_t comm, void* window) {
  static auto* const call = find(static_cast<ncclResult_t (*)(ncclComm_t, void*)>(nullptr), "ncclCommWindowDeregister");
  return call(comm, window);
}

}  // namespace tokamak

#define TOKAMAK_FORWARD(function, ...)                                                                   \
  static auto* const forward_to = ::tokamak::find(static_cast<decltype(&function)>(nullptr), #function); \
  return forward_to(__VA_ARGS__)

extern "C" {

ncclResult_t ncclGetVersion(int* version) { TOKAMAK_FORWARD(ncclGetVersion, version); }
const char* ncclGetErrorString(ncclResult_t result) { TOKAMAK_FORWARD(ncclGetErrorString, result); }
const char* ncclGetLastError(ncclComm_t comm) { TOKAMAK_FORWARD(ncclGetLastError, comm); }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { TOKAMAK_FORWARD(ncclGetUniqueId, id); }
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  TOKAMAK_FORWARD(ncclCommInitRankConfig, comm, ranks, id, rank, config);
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t* config) {
  TOKAMAK_FORWARD(ncclCommSplit, comm, color, key, part, config);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { TOKAMAK_FORWARD(ncclCommDestroy, comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { TOKAMAK_FORWARD(ncclCommAbort, comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  TOKAMAK_FORWARD(ncclCommGetAsyncError, comm, error);
}
ncclResult_t ncclMemAlloc(void** memory, size_t bytes) { TOKAMAK_FORWARD(ncclMemAlloc, memory, bytes); }
ncclResult_t ncclMemFree(void* memory) { TOKAMAK_FORWARD(ncclMemFree, memory); }
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* memory, size_t bytes, void** handle) {
  TOKAMAK_FORWARD(ncclCommRegister, comm, memory, bytes, handle);
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  TOKAMAK_FORWARD(ncclCommDeregister, comm, handle);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  TOKAMAK_FORWARD(ncclAllGather, from, to, count, type, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  TOKAMAK_FORWARD(ncclReduceScatter, from, to, count, type, op, comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  TOKAMAK_FORWARD(ncclAllReduce, from, to, count, type, op, comm, stream);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  TOKAMAK_FORWARD(ncclSend, from, count, type, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  TOKAMAK_FORWARD(ncclRecv, to, count, type, peer, comm, stream);
}
ncclResult_t ncclGroupStart() { TOKAMAK_FORWARD(ncclGroupStart); }
ncclResult_t ncclGroupEnd() { TOKAMAK_FORWARD(ncclGroupEnd); }

}  // extern "C"
