// Comm over NCCL, for a GPU's memory: data on the streams it is given, control messages through a host group that it
// owns. Communicators are blocking; asynchronous errors end the process (nccl/watcher.h).
#include <nccl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "cuda/device.h"
#include "cuda/nccl/bf16_reduction.h"
#include "cuda/nccl/check.h"
#include "cuda/nccl/communicator.h"
#include "cuda/nccl/library.h"
#include "cuda/nccl/settings.h"
#include "cuda/nccl/warm_up.h"

namespace tokamak {

namespace {

std::string members(Comm& control, const NcclShared& shared) {
  std::vector<int> ranks;
  for (const std::string& rank : control.gather_all(str(shared.rank))) ranks.push_back(std::stoi(rank));
  return text_of_ranks(ranks);
}

size_t to_size(int64_t count) { return static_cast<size_t>(count); }

// A group has two communicators, so that a slow reduction delays no gather. They are created and connected with the
// group, because they allocate GPU memory, which is measured later. The group of all ranks makes its two from unique
// ids. Subgroups split theirs from those: gathers share resources only with gathers, and reductions only with
// reductions.
class NcclComm final : public Comm {
 public:
  NcclComm(std::unique_ptr<Comm> control, std::unique_ptr<NcclShared> shared, Precision reduce)
      : owned_(std::move(shared)), shared_(*owned_), control_(std::move(control)), group_(members(*control_, shared_)) {
    own_gather_.emplace(*control_, shared_, NcclUse::kGathers, group_);
    own_reduce_.emplace(*control_, shared_, NcclUse::kReductions, group_);
    if (reduce == Precision::kBF16) own_bf16_.emplace(*control_, *own_reduce_, shared_);
    use_own();
  }

  // The group of those ranks of `parent` that give one color; `control` has the same ranks.
  NcclComm(std::unique_ptr<Comm> control, const NcclComm& parent, int color, GroupStreams streams)
      : shared_(parent.shared_), control_(std::move(control)), group_(members(*control_, shared_)) {
    if (streams == GroupStreams::kTwo) own_gather_.emplace(*parent.gather_, color, *control_, group_);
    own_reduce_.emplace(*parent.reduce_, color, *control_, group_);
    if (parent.bf16_ != nullptr) own_bf16_.emplace(*control_, *own_reduce_, shared_);
    use_own();
  }

  // The group of all ranks of `parent`, with the communicators of `parent`.
  NcclComm(std::unique_ptr<Comm> control, const NcclComm& parent)
      : shared_(parent.shared_),
        control_(std::move(control)),
        group_(parent.group_),
        gather_(parent.gather_),
        reduce_(parent.reduce_),
        bf16_(parent.bf16_),
        connected_(parent.connected_) {}

  // Runs the first collectives; call it before the group is used.
  void connect() {
    const int64_t before = shared_.device.available_bytes();
    const Stopwatch watch;
    NcclWarmUp first{.bytes = shared_.warm_up_bytes, .gathers = gather_->name(), .reductions = reduce_->name()};
    if (bf16_ != nullptr) {
      first.reduce = Precision::kBF16;
      first.bf16_reductions = bf16_->name();
    }
    warm_up(*this, shared_.device, first);
    if (first.bytes == 0) return;
    connected_ = true;
    if (rank() != 0) return;
    log::info("NCCL: first collectives of ", group_, " in ", significant(watch.seconds(), 3), " s; they took ",
              human_bytes(double(before - shared_.device.available_bytes())), " of GPU memory");
  }

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }

  void register_memory() override {
    std::vector<NcclMemory::Member> members;
    if (gather_ != reduce_) members.push_back(gather_->member());
    members.push_back(reduce_->member());
    if (bf16_ != nullptr) {
      for (const NcclCommunicator* communicator : bf16_->own()) members.push_back(communicator->member());
    }
    shared_.memory.join(*control_, members);
  }

  int64_t scratch_elements(int64_t slice, DType dtype) const override {
    return nccl_scratch_elements(size(), slice, dtype);
  }

  void do_barrier() override { control_->barrier(); }
  void do_broadcast(std::string& bytes, int root) override { control_->broadcast(bytes, root); }
  std::vector<std::string> do_gather_all(const std::string& bytes) override { return control_->gather_all(bytes); }
  int64_t reserve_bytes() const override {
    const int64_t own = int64_t{own_gather_.has_value()} + int64_t{own_reduce_.has_value()};
    return (own + (own_bf16_ ? std::ssize(own_bf16_->own()) : 0)) * kNcclReserveBytes;
  }
  int64_t pending_bytes() const override { return connected_ ? 0 : reserve_bytes(); }
  int64_t do_max(int64_t value) override { return control_->max(value); }
  std::unique_ptr<Comm> do_split(int color) override { return part_of(color, GroupStreams::kTwo); }
  std::unique_ptr<Comm> do_split_by(const std::function<int(int rank)>& color, GroupStreams streams) override {
    return part_of(color(rank()), streams);
  }

 protected:
  void do_all_gather(Stream& stream, Tensor slice, Tensor full) override {
    TOKAMAK_NCCL(
        ncclAllGather(slice.data(), full.data(), to_size(slice.bytes()), ncclInt8, gather_->get(), handle(stream)));
  }

  void do_reduce_scatter(Stream& stream, const ReduceScatter& args) override {
    if (args.dtype == DType::kBF16) {
      TOKAMAK_CHECK(bf16_ != nullptr, "a group that was not made for bf16");
      return bf16_->run(handle(stream), args);
    }
    TOKAMAK_CHECK(args.dtype == DType::kF32, name_of(args.dtype));
    TOKAMAK_NCCL(ncclReduceScatter(args.full.as<float>(), args.slice.as<float>(), to_size(args.slice.count()),
                                   ncclFloat32, ncclSum, reduce_->get(), handle(stream)));
  }

  void do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) override {
    TOKAMAK_NCCL(ncclGroupStart());
    for (const auto& [peer, tensor] : sends) {
      TOKAMAK_NCCL(ncclSend(tensor.data(), to_size(tensor.bytes()), ncclInt8, peer, reduce_->get(), handle(stream)));
    }
    for (const auto& [peer, tensor] : receives) {
      TOKAMAK_NCCL(ncclRecv(tensor.data(), to_size(tensor.bytes()), ncclInt8, peer, reduce_->get(), handle(stream)));
    }
    TOKAMAK_NCCL(ncclGroupEnd());
  }

  void do_all_reduce(Stream& stream, Tensor x) override {
    const ncclDataType_t type = x.dtype() == DType::kF64 ? ncclFloat64 : ncclFloat32;  // Comm allows no other
    TOKAMAK_NCCL(ncclAllReduce(x.data(), x.data(), to_size(x.count()), type, ncclSum, reduce_->get(), handle(stream)));
  }

 private:
  std::unique_ptr<Comm> part_of(int color, GroupStreams streams) {
    std::unique_ptr<Comm> control = control_->split(color);
    if (control->size() == size()) return std::make_unique<NcclComm>(std::move(control), *this);
    auto part = std::make_unique<NcclComm>(std::move(control), *this, color, streams);
    part->connect();
    return part;
  }

  void use_own() {
    reduce_ = &*own_reduce_;
    gather_ = own_gather_ ? &*own_gather_ : reduce_;
    if (own_bf16_) bf16_ = &*own_bf16_;
  }

  std::unique_ptr<NcclShared> owned_;  // set only in the group from which the others were split
  NcclShared& shared_;
  std::unique_ptr<Comm> control_;
  std::string group_;  // "ranks 0 to 7"
  std::optional<NcclCommunicator> own_gather_, own_reduce_;
  std::optional<NcclBf16Reduction> own_bf16_;
  // This group's own communicators, or those of another group with the same ranks, which outlives this group.
  const NcclCommunicator* gather_ = nullptr;
  const NcclCommunicator* reduce_ = nullptr;  // the same as gather_ if all collectives go on one stream
  const NcclBf16Reduction* bf16_ = nullptr;
  bool connected_ = false;
};

}  // namespace

std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device& device, const RuntimeOptions& options, Precision reduce) {
  const char* const named = std::getenv("NCCL_HOSTID");  // the user's; let_ranks_share_gpu() may set it below
  const std::string node = named != nullptr ? named : host_name();
  order_launches();
  if (options.deterministic) {
    const std::string doubt = fix_order_of_sums();
    if (!doubt.empty() && control.rank() == 0) log::warning(doubt);
  }
  if (options.ranks_per_gpu > 1) let_ranks_share_gpu(control.rank());
  collectively(control, [&] {
    std::string why_not;
    if (open_nccl(&why_not)) return;
    fail(Kind::kDevice, str(control.size(), " ranks on GPUs take NCCL: ", why_not),
         "install NCCL 2, or put its folder into LD_LIBRARY_PATH; one rank runs without");
  });
  if (control.rank() == 0) log::info("NCCL ", nccl_version(), ", ", nccl_settings(environ));
  auto shared = std::make_unique<NcclShared>(control.rank(), static_cast<CudaDevice&>(device));
  shared->node = node;
  shared->max_ctas = static_cast<int>(options.nccl_max_ctas);
  shared->warm_up_bytes = options.nccl_warm_up;
  shared->deterministic = options.deterministic;
  auto all = std::make_unique<NcclComm>(control.split(0), std::move(shared), reduce);
  all->connect();
  return all;
}

}  // namespace tokamak
