#include "cuda/nccl/settings.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/process.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int kKeepTheUsers = 0;

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
