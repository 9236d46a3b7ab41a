// How far the hosts' clocks are from rank 0's: logs and file times of several hosts are compared when something breaks.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

using Clock = std::function<double()>;  // seconds since 1970

CheckResult check_clocks(Comm& comm, const RankHosts& peers, const Clock& clock);

}  // namespace tokamak::doctor
