// Opens libnccl when a run has several ranks: a program that was built with NCCL starts, and runs on one GPU, without
// it.
#pragma once

#include <nccl.h>

#include <string>

namespace tokamak {

// Whether NCCL's functions may be called; if not, why.
bool open_nccl(std::string* why_not);

std::string nccl_version();  // "2.28.9", of the opened library

// Registers a symmetric window (ncclCommWindowRegister of 2.27 and later): memory of equal size on all ranks of `comm`.
// Collective. `*window` stays null if the library or the machine does not support windows.
ncclResult_t register_window(ncclComm_t comm, void* memory, size_t bytes, void** window);
ncclResult_t deregister_window(ncclComm_t comm, void* window);

}  // namespace tokamak
