#include "comm/world.h"

#include <algorithm>
#include <cstdlib>

#include "base/process.h"
#include "comm/mpi.h"
#include "comm/tcp.h"

namespace tokamak {

namespace {

constexpr double kTimeoutSeconds = 120;

}  // namespace

World::World() : launch_(find_launch([](const char* name) { return std::getenv(name); })) {
  if (launch_.launcher == Launcher::kMpi) {
    MpiWorld world = start_mpi();
    comm_ = std::move(world.comm);
    local_rank_ = world.local_rank;
    local_size_ = world.local_size;
  } else if (launch_.launcher == Launcher::kTcp) {
    comm_ = make_tcp_comm({.rank = launch_.rank,
                           .size = launch_.size,
                           .address = launch_.address,
                           .port = launch_.port,
                           .job = launch_.job,
                           .timeout_seconds = kTimeoutSeconds});
    find_neighbours();
  } else {
    comm_ = make_single_comm();
  }
}

World::World(std::unique_ptr<Comm> ranks) : comm_(std::move(ranks)) { find_neighbours(); }

World::~World() {
  comm_.reset();
  if (launch_.launcher == Launcher::kMpi) end_mpi();
}

// Ranks with this host's name; what the launcher has said about them is taken as it is.
void World::find_neighbours() {
  const std::vector<std::string> hosts = comm_->gather_all(host_name());
  const auto own = hosts.begin() + comm_->rank();
  local_rank_ = launch_.local_rank >= 0 ? launch_.local_rank : static_cast<int>(std::count(hosts.begin(), own, *own));
  local_size_ =
      launch_.local_size >= 0 ? launch_.local_size : static_cast<int>(std::count(hosts.begin(), hosts.end(), *own));
}

}  // namespace tokamak
