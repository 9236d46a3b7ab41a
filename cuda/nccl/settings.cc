#include "cuda/nccl/settings.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/process.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int kKeepTheUsers = 0;

// "Ring", "ring,tree", "Tree;allreduce:ring": algorithms for all functions, then for single functions. "^NVLS"
// allows all algorithms but NVLS.
bool all_have_fixed_order(std::string algorithms) {
  std::replace(algorithms.begin(), algorithms.end(), ';', ',');
  for (const std::string& part : split(algorithms, ',')) {
    const std::string name = part.substr(part.find(':') + 1);  // npos + 1 is 0
    if (strcasecmp(name.c_str(), "ring") != 0 && strcasecmp(name.c_str(), "tree") != 0) return false;
  }
  return true;
}

}  // namespace

std::string nccl_settings(const char* const* environment) {
  std::vector<std::string> found;
  for (; *environment != nullptr; ++environment) {
    if (starts_with(*environment, "NCCL_")) found.emplace_back(*environment);
  }
  std::sort(found.begin(), found.end());
  return join(found, " ");
}

void order_launches() { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", kKeepTheUsers); }

std::string fix_order_of_sums() {
  setenv("NCCL_ALGO", "Ring", kKeepTheUsers);
  const std::string algorithms = std::getenv("NCCL_ALGO");
  if (all_have_fixed_order(algorithms)) return "";
  return str("runtime.deterministic is true, but NCCL_ALGO=", algorithms,
             " allows more than Ring and Tree: sums may differ from run to run; unset it, or set it to Ring");
}

void let_ranks_share_gpu(int rank) {
  setenv("NCCL_HOSTID", str(host_name(), "-rank-", rank).c_str(), kKeepTheUsers);
  setenv("NCCL_SOCKET_IFNAME", "lo", kKeepTheUsers);  // the ranks are on one machine, but NCCL assumes a network
  setenv("NCCL_IB_DISABLE", "1", kKeepTheUsers);
  setenv("NCCL_MNNVL_ENABLE", "0", kKeepTheUsers);
  setenv("NCCL_NVLS_ENABLE", "0", kKeepTheUsers);
  // The ranks time-share the GPU, so kernels that wait for a peer should be small.
  setenv("NCCL_MAX_NCHANNELS", "2", kKeepTheUsers);
}

}  // namespace tokamak
