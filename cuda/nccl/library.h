// libnccl, opened when several ranks first ask for it: a program that was built with NCCL starts, and runs on one GPU,
// without it.
#pragma once

#include <nccl.h>

#include <string>

namespace tokamak {

// Whether NCCL's functions may be called from now on; if not, why.
bool open_nccl(std::string* why_not);

std::string nccl_version();  // "2.28.9", of the library that was opened

// A symmetric window (ncclCommWindowRegister of 2.27 and later): memory of one size on all ranks of `comm`, which must
// all call. `*window` stays null where the library or the machine has no such windows.
ncclResult_t register_window(ncclComm_t comm, void* memory, size_t bytes, void** window);
ncclResult_t deregister_window(ncclComm_t comm, void* window);

}  // namespace tokamak
