// Settings of a process and its machine that make training slow or break it, each with what happens and what to set
// instead: one table of variables, one list of facts about the machine.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

using Variables = std::function<const char*(const char* name)>;  // as std::getenv

// What the rules ask about; by default of this process.
struct Surroundings {
  int ranks = 1;
  int hosts = 1;
  int ranks_on_cores = 1;  // that may run on this rank's cores, this one included
  int ranks_on_host = 1;
  int threads = 1;     // of this rank
  int cores = 1;       // that this rank may run on
  int host_cores = 1;  // that are online
  bool on_gpu = false;
  std::string system = "/";  // where proc/ and sys/ lie
};

// What hurts, a line each.
std::vector<std::string> hurtful_variables(const Variables& variables, const Surroundings& here);
std::vector<std::string> hurtful_settings(const Surroundings& here);

// Those of `paths` that NVIDIA makes: two installations side by side (the toolkit's and pip's, say) show here.
std::vector<std::string> gpu_libraries(const std::vector<std::string>& paths);

CheckResult check_environment(Comm& comm, const RankHosts& peers, const Variables& variables, const Surroundings& here);

}  // namespace tokamak::doctor
