#include "cuda/nccl/communicator.h"

#include <cstring>
#include <exception>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "cuda/nccl/check.h"

namespace tokamak {

NcclCommunicator::NcclCommunicator(Comm& control, NcclShared& shared) : shared_(shared) {
  ncclUniqueId id;
  std::string bytes;
  collectively(control, [&] {
    if (control.rank() != 0) return;
    TOKAMAK_NCCL(ncclGetUniqueId(&id));
    bytes.assign(id.internal, sizeof(id.internal));
  });
  control.broadcast(bytes, 0);
  TOKAMAK_CHECK(bytes.size() == sizeof(id.internal), bytes.size());
  std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (shared.max_ctas > 0) config.maxCTAs = shared.max_ctas;
  const Stopwatch watch;
  TOKAMAK_NCCL(ncclCommInitRankConfig(&comm_, control.size(), id, control.rank(), &config));
  if (control.rank() == 0) {
    log::info("NCCL: a communicator of ", control.size(), " rank(s) in ", significant(watch.seconds(), 3), " s");
  }
  shared_.watcher.watch(comm_);
}

NcclCommunicator::~NcclCommunicator() {
  shared_.watcher.forget(comm_);
  shared_.memory.leave(comm_);
  // If an error ends this rank, its peers may never join the communicator's pending operations.
  std::uncaught_exceptions() > 0 ? ncclCommAbort(comm_) : ncclCommDestroy(comm_);
}

}  // namespace tokamak
