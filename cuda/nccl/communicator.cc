#include "cuda/nccl/communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "cuda/check.h"
#include "cuda/nccl/check.h"

namespace tokamak {

namespace {

constexpr int kZeroCtas = 0x02;      // NCCL_CTA_POLICY_ZERO, which headers before 2.28 lack
constexpr int kHasZeroCtas = 22800;  // older libraries refuse the value
constexpr size_t kRanksInText = 8;

// A template, so that the fields that older headers lack are left out.
template <class Config>
void set_recent_fields(Config& config, NcclUse use, const char* name) {
  if constexpr (requires { config.commName; }) config.commName = name;
  if constexpr (requires { config.CTAPolicy; }) {
    int version = 0;
    TOKAMAK_NCCL(ncclGetVersion(&version));
    // Gathers by copy engines instead of thread blocks: GEMMs lose no SM to them. This takes one node (one NVLink
    // domain) and both operands in symmetric windows; elsewhere NCCL ignores the policy and launches its kernels.
    // Reductions compute, so NCCL chooses their thread blocks.
    if (use == NcclUse::kGathers && version >= kHasZeroCtas) config.CTAPolicy = kZeroCtas;
  }
}

std::string name_of(NcclUse use, const std::string& group) {
  return str(use == NcclUse::kGathers ? "gathers" : "reductions", " of ", group);
}

}  // namespace

std::string text_of_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return str("rank ", ranks.front());
  const auto last = static_cast<int>(ranks.size()) - 1;
  if (last > 1 && ranks.back() - ranks.front() == last) return str("ranks ", ranks.front(), " to ", ranks.back());
  std::string text = str("ranks ", ranks.front());
  for (size_t i = 1; i < std::min(ranks.size(), kRanksInText); ++i) text += str(", ", ranks[i]);
  return ranks.size() > kRanksInText ? str(text, ", ... (", ranks.size(), ")") : text;
}

ncclConfig_t NcclCommunicator::config() const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (shared_.max_ctas > 0) config.maxCTAs = shared_.max_ctas;
  config.splitShare = 1;  // NCCL asks the parent's configuration
  set_recent_fields(config, use_, name_.c_str());
  return config;
}

NcclMemory::Member NcclCommunicator::member() const {
  const bool may_reorder = use_ == NcclUse::kReductions && shared_.deterministic;
  return {comm_, may_reorder ? NcclForm::kPlain : NcclForm::kWindow};
}

NcclCommunicator::NcclCommunicator(Comm& control, NcclShared& shared, NcclUse use, const std::string& group)
    : shared_(shared), use_(use), name_(name_of(use, group)) {
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
  ncclConfig_t configured = config();
  const Stopwatch watch;
  TOKAMAK_NCCL(ncclCommInitRankConfig(&comm_, control.size(), id, control.rank(), &configured));
  made(control, watch.seconds());
}

NcclCommunicator::NcclCommunicator(const NcclCommunicator& parent, int color, Comm& part, const std::string& group)
    : shared_(parent.shared_), use_(parent.use_), name_(name_of(parent.use_, group)) {
  TOKAMAK_CHECK(color >= 0, color);
  TOKAMAK_CUDA(cudaDeviceSynchronize());  // NCCL splits no communicator that is at work
  ncclConfig_t configured = config();     // a part does not inherit it
  const Stopwatch watch;
  TOKAMAK_NCCL(ncclCommSplit(parent.comm_, color, part.rank(), &comm_, &configured));
  made(part, watch.seconds());
}

void NcclCommunicator::made(Comm& control, double seconds) {
  if (control.rank() == 0) log::info("NCCL: a communicator for ", name_, " in ", significant(seconds, 3), " s");
  shared_.watcher.watch(comm_, name_);
}

NcclCommunicator::~NcclCommunicator() {
  shared_.watcher.forget(comm_);
  shared_.memory.leave(comm_);
  // If an error ends this rank, its peers may never join the communicator's pending operations.
  std::uncaught_exceptions() > 0 ? ncclCommAbort(comm_) : ncclCommDestroy(comm_);
}

}  // namespace tokamak
