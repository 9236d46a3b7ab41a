// Settings of a process and its machine that slow training down or break it, each with its effect and remedy. One table
// has environment variables, one list has facts about the machine.
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

using Variables = std::function<const char*(const char* name)>;  // as std::getenv

// The facts that the rules depend on.
struct Surroundings {
  int ranks = 1;
  int hosts = 1;
  int ranks_on_cores = 1;  // ranks that share this rank's cores, this one included
  int ranks_on_host = 1;
  int threads = 1;     // of this rank
  int cores = 1;       // in this rank's affinity mask
  int host_cores = 1;  // online
  bool on_gpu = false;
  std::string system = "/";  // the directory of proc/ and sys/
};

// The settings that hurt, a line each.
std::vector<std::string> hurtful_variables(const Variables& variables, const Surroundings& here);
std::vector<std::string> hurtful_settings(const Surroundings& here);

// NVIDIA's libraries among `paths`. They show two installations, such as the toolkit's and pip's.
std::vector<std::string> gpu_libraries(const std::vector<std::string>& paths);

CheckResult check_environment(Comm& comm, const RankHosts& peers, const Variables& variables, const Surroundings& here);

}  // namespace tokamak::doctor
