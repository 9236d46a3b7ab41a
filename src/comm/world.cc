#include "comm/world.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/parallel_for.h"
#include "base/process.h"
#include "base/service_thread.h"
#include "comm/mpi.h"
#include "comm/mpi_control.h"
#include "comm/tcp.h"

namespace tokamak {

namespace {

constexpr double kTimeoutSeconds = 120;
constexpr double kMpiSeconds = 300;  // MPI_Init of thousands of ranks takes a minute or two

double mpi_seconds() {
  const char* text = std::getenv("TOKAMAK_MPI_SECONDS");
  if (text == nullptr) return kMpiSeconds;
  const double seconds = std::strtod(text, nullptr);
  if (!(seconds > 0)) {
    fail(Kind::kConfig, str("the environment variable TOKAMAK_MPI_SECONDS is '", text, "', it should be seconds"));
  }
  return seconds;
}

}  // namespace

World::World(std::function<bool()> interrupted)
    : launch_(find_launch([](const char* name) { return std::getenv(name); })) {
  if (launch_.launcher == Launcher::kMpi) {
    // MPI_Init has no time limit, and no watchdog runs yet.
    const double seconds = mpi_seconds();
    const ExitTimer timer(seconds, static_cast<int>(Kind::kComm), [&] {
      log::error("the ranks have not met over MPI within ", seconds,
                 " s: one was never started, or a message of the launcher was lost (TOKAMAK_MPI_SECONDS)");
      log::flush();
    });
    MpiWorld world = start_mpi();
    comm_ = std::move(world.comm);
    local_rank_ = world.local_rank;
    local_size_ = world.local_size;
    if (comm_->size() == 1) return;
    if (std::optional<ControlPeers> peers = connect_control(*comm_, launch_.secret))
      watch_.emplace(comm_->rank(), std::move(*peers));
  } else if (launch_.launcher == Launcher::kTcp) {
    Peers peers = meet({.rank = launch_.rank,
                        .size = launch_.size,
                        .addresses = {launch_.address},
                        .port = launch_.port,
                        .job = launch_.job,
                        .secret = launch_.secret,
                        .one_host = launch_.local_size == launch_.size,
                        .timeout_seconds = kTimeoutSeconds,
                        .interrupted = interrupted});
    const std::vector<std::string> hosts = peers.control.hosts;
    watch_.emplace(launch_.rank, std::move(peers.control));
    try {
      comm_ = make_tcp_comm(launch_.rank, std::move(peers.data), hosts, interrupted);
    } catch (const Error& error) {
      // The ranks have only control connections yet. The error would wait in the watch's destructor for the others,
      // which wait for this rank.
      log::configure(launch_.rank, launch_.size, log::Level::kInfo);
      log::error(error.what(), error.hint().empty() ? "" : "\n  hint: ", error.hint());
      log::flush();
      end_all(error.exit_code());
    }
    find_neighbours(hosts);
  } else {
    comm_ = make_single_comm();
  }
}

World::World(std::unique_ptr<Comm> ranks) : comm_(std::move(ranks)) { find_neighbours(comm_->gather_all(host_name())); }

// The watch disconnects first: a rank that closes its other connections earlier would look dead.
World::~World() {
  std::atomic<bool> watches = watch_.has_value();
  std::optional<ExitTimer> timer;
  if (leave_within_ && size() > 1) {
    timer.emplace(*leave_within_, static_cast<int>(Kind::kComm), [&, this] {
      log::error("the ranks have not all disconnected within ", *leave_within_,
                 " s; still connected: ", watches ? watch_->present() : "unknown");
      log::flush();
    });
  }
  if (watches) watch_->leave();
  watches = false;
  watch_.reset();
  comm_.reset();
  if (launch_.launcher == Launcher::kMpi) end_mpi();
}

int World::ranks_on_cores() {
  const std::string own = host_name() + affinity();
  const std::vector<std::string> all = comm_->gather_all(own);
  return static_cast<int>(std::count(all.begin(), all.end(), own));
}

void World::end_all(int exit_code) {
  if (watch_) watch_->end_all(exit_code);
  if (launch_.launcher == Launcher::kMpi && comm_ && size() > 1) abort_mpi(exit_code);
  std::_Exit(exit_code);
}

// Counts ranks with this host's name, unless the launcher has stated it.
void World::find_neighbours(const std::vector<std::string>& hosts) {
  const auto own = hosts.begin() + comm_->rank();
  local_rank_ = launch_.local_rank >= 0 ? launch_.local_rank : static_cast<int>(std::count(hosts.begin(), own, *own));
  local_size_ =
      launch_.local_size >= 0 ? launch_.local_size : static_cast<int>(std::count(hosts.begin(), hosts.end(), *own));
}

}  // namespace tokamak
