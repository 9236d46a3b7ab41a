#include "cuda/nccl/check.h"

#include "base/error.h"

namespace tokamak {

std::string nccl_words(ncclResult_t result, ncclComm_t comm) {
  const char* more = ncclGetLastError(comm);
  return str(ncclGetErrorString(result), more == nullptr || *more == '\0' ? "" : ": ", more == nullptr ? "" : more);
}

void nccl_failed(ncclResult_t result, const char* call, const char* file, int line) {
  fail(Kind::kComm, str("NCCL: ", nccl_words(result, nullptr), " (from ", call, " at ", file, ":", line, ")"),
       "NCCL_DEBUG=INFO in the environment makes NCCL log more");
}

}  // namespace tokamak
