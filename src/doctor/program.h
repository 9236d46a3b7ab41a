// All ranks run the same program with the same libraries: another binary may speak another protocol, another oneDNN or
// NCCL computes other bits.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

// Of this process: version, hash of the binary, and the loaded libraries whose version matters, by file name and size.
Facts program_facts(const std::string& version);

CheckResult check_program(Comm& comm, const RankHosts& peers, const Facts& own);

}  // namespace tokamak::doctor
