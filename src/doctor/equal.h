// What must be equal on all ranks: the config (other models, or ranks that wait for each other), the program and its
// libraries (other bits, other protocols), and the hosts' clocks, by which logs of several hosts are compared.
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
