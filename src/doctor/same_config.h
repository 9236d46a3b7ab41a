// All ranks read the same config: ranks with different ones would train different models or wait for each other.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

// `read`: the resolved config as text; its Error is this rank's finding.
CheckResult check_config(Comm& comm, const RankHosts& peers, const std::function<std::string()>& read);

}  // namespace tokamak::doctor
