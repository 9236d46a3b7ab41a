// Checks every NCCL call; a failure is an Error(kComm) with the call, its source location and NCCL's message.
#pragma once

#include <nccl.h>

#include <string>

namespace tokamak {

[[noreturn]] void nccl_failed(ncclResult_t result, const char* call, const char* file, int line);

// "remote process exited or there was a network error: socket closed by ...": NCCL's text for a result.
std::string nccl_words(ncclResult_t result, ncclComm_t comm);

}  // namespace tokamak

#define TOKAMAK_NCCL(call)                                                        \
  do {                                                                            \
    if (const ncclResult_t result_ = (call); result_ != ncclSuccess) [[unlikely]] \
      ::tokamak::nccl_failed(result_, #call, __FILE__, __LINE__);                 \
  } while (false)
