// libnccl, opened when several ranks first ask for it: a program that was built with NCCL starts, and runs on one GPU,
// without it.
#pragma once

#include <string>

namespace tokamak {

// Whether NCCL's functions may be called from now on; if not, why.
bool open_nccl(std::string* why_not);

std::string nccl_version();  // "2.28.9", of the library that was opened

}  // namespace tokamak
