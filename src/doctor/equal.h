// Checks of equality on all ranks: config, program and libraries, and the hosts' clocks. Another config trains another
// model or hangs; another library has other bits or protocols; logs of several hosts are compared by their clocks.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

// `read` returns the resolved config as text. Its Error is this rank's finding.
CheckResult check_config(Comm& comm, const RankHosts& peers, const std::function<std::string()>& read);

// Version and hash of this process's binary, and the libraries whose version matters by file name and size.
Facts program_facts(const std::string& version);
CheckResult check_program(Comm& comm, const RankHosts& peers, const Facts& own);

// `clock` returns seconds since 1970.
CheckResult check_clocks(Comm& comm, const RankHosts& peers, const std::function<double()>& clock);

}  // namespace tokamak::doctor
