// Comm over NCCL, for a GPU's memory: the data plane on the streams it is given, the control plane through a group of
// host messages that it owns. Blocking communicators; errors that come later end the process (nccl_watcher.h).
#include <nccl.h>
#include <unistd.h>

#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "cuda/device.h"
#include "cuda/nccl_check.h"
#include "cuda/nccl_library.h"
#include "cuda/nccl_memory.h"
#include "cuda/nccl_settings.h"
#include "cuda/nccl_watcher.h"
#include "cuda/wire.h"
#include "dist/data_comm.h"
#include "dist/exchange.h"
#include "dist/together.h"

namespace tokamak {

namespace {

// What all communicators of the process share.
struct Shared {
  Shared(int rank, CudaDevice& device) : watcher(rank), memory(device) {}
  NcclWatcher watcher;
  NcclMemory memory;
};

// A new communicator of all ranks of `control`.
ncclComm_t join_all(Comm& control) {
  std::string bytes;
  together(control, [&] {
    ncclUniqueId id;
    if (control.rank() != 0) return;
    TOKAMAK_NCCL(ncclGetUniqueId(&id));
    bytes.assign(id.internal, sizeof(id.internal));
  });
  control.broadcast(bytes, 0);
  ncclUniqueId id;
  TOKAMAK_CHECK(bytes.size() == sizeof(id.internal), bytes.size());
  std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
  ncclComm_t comm = nullptr;
  TOKAMAK_NCCL(ncclCommInitRank(&comm, control.size(), id, control.rank()));
  return comm;
}

size_t to_size(int64_t count) { return static_cast<size_t>(count); }

// One of NCCL's communicators.
class Communicator {
 public:
  Communicator(Comm& control, Shared& shared) : shared_(shared), comm_(join_all(control)) {
    shared_.watcher.watch(comm_);
  }
  ~Communicator() {
    shared_.watcher.forget(comm_);
    shared_.memory.leave(comm_);
    // While an error ends this rank, its peers may never come to what the communicator still has to do.
    std::uncaught_exceptions() > 0 ? ncclCommAbort(comm_) : ncclCommDestroy(comm_);
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t get() const { return comm_; }

 private:
  Shared& shared_;
  ncclComm_t comm_;
};

// Two communicators, so that a slow reduction never stands before the next gather. Made with the group: they take
// memory of the GPU, which is measured later.
class NcclComm final : public Comm {
 public:
  NcclComm(std::unique_ptr<Comm> control, Shared& shared, std::unique_ptr<Shared> owned = nullptr)
      : owned_(std::move(owned)),
        shared_(shared),
        control_(std::move(control)),
        gather_(*control_, shared),
        reduce_(*control_, shared) {}

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }

  void all_gather(Stream& stream, Tensor slice, Tensor full) override {
    TOKAMAK_CHECK(slice.dtype() == full.dtype() && slice.count() * size() == full.count(), slice.text(), " to ",
                  full.text());
    TOKAMAK_NCCL(
        ncclAllGather(slice.data(), full.data(), to_size(slice.bytes()), ncclInt8, gather_.get(), handle(stream)));
  }

  void register_memory() override {
    for (const Communicator* communicator : {&gather_, &reduce_}) shared_.memory.join(communicator->get());
  }

  void reduce_scatter(Stream& stream, const ReduceScatter& args) override {
    const Tensor full = args.full, slice = args.slice;
    TOKAMAK_CHECK(slice.count() * size() == full.count(), full.text(), " to ", slice.text());
    if (args.dtype == DType::kBF16) {
      reduce_scatter_bf16(handle(stream), args);
    } else {
      TOKAMAK_NCCL(ncclReduceScatter(full.as<float>(), slice.as<float>(), to_size(slice.count()), ncclFloat32, ncclSum,
                                     reduce_.get(), handle(stream)));
    }
  }

  int64_t scratch_elements(int64_t slice, DType dtype) const override {
    return dtype == DType::kBF16 ? ExchangeRounds{size(), slice}.scratch_elements() : 0;
  }

  void all_reduce(Stream& stream, Tensor x) override {
    TOKAMAK_CHECK(x.dtype() == DType::kF32 || x.dtype() == DType::kF64, x.text());
    const ncclDataType_t type = x.dtype() == DType::kF64 ? ncclFloat64 : ncclFloat32;
    TOKAMAK_NCCL(ncclAllReduce(x.data(), x.data(), to_size(x.count()), type, ncclSum, reduce_.get(), handle(stream)));
  }

  void barrier() override { control_->barrier(); }
  void broadcast(std::string& bytes, int root) override { control_->broadcast(bytes, root); }
  std::vector<std::string> gather_all(const std::string& bytes) override { return control_->gather_all(bytes); }
  int64_t max(int64_t value) override { return control_->max(value); }
  std::unique_ptr<Comm> split(int color) override {
    return std::make_unique<NcclComm>(control_->split(color), shared_);
  }
  void abort(int exit_code) override { control_->abort(exit_code); }

 private:
  // NCCL would sum in bf16, so only the exchange is its.
  void reduce_scatter_bf16(cudaStream_t stream, const ReduceScatter& args) {
    const int64_t length = args.slice.count();
    const ExchangeRounds rounds{size(), length};
    TOKAMAK_CHECK(args.scratch && args.scratch.count() >= rounds.scratch_elements(), "a slice of ", length,
                  ", scratch ", args.scratch.text());
    for (int64_t begin = 0; begin < length; begin += rounds.longest_piece()) {
      const int64_t piece = std::min(rounds.longest_piece(), length - begin);
      const WirePiece at{size(), length, begin, piece};
      bf16* const send = args.scratch.as<bf16>();
      bf16* const received = send + size() * piece;
      round_to_wire(stream, args.full.as<float>(), send, at);
      TOKAMAK_NCCL(ncclGroupStart());
      for (int peer = 0; peer < size(); ++peer) {
        TOKAMAK_NCCL(ncclSend(send + peer * piece, to_size(piece), ncclBfloat16, peer, reduce_.get(), stream));
        TOKAMAK_NCCL(ncclRecv(received + peer * piece, to_size(piece), ncclBfloat16, peer, reduce_.get(), stream));
      }
      TOKAMAK_NCCL(ncclGroupEnd());
      sum_from_wire(stream, received, args.slice.as<float>(), at);
    }
  }

  std::unique_ptr<Shared> owned_;  // by the group that the others came from
  Shared& shared_;
  std::unique_ptr<Comm> control_;
  Communicator gather_, reduce_;
};

}  // namespace

std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device& device, const RuntimeOptions& options) {
  const std::string set_by_user = nccl_settings(environ);
  if (options.ranks_per_gpu > 1) let_ranks_share_gpu(control.rank());
  together(control, [&] {
    std::string why_not;
    if (open_nccl(&why_not)) return;
    fail(Kind::kDevice, str(control.size(), " ranks on GPUs take NCCL: ", why_not),
         "install NCCL 2, or put its folder into LD_LIBRARY_PATH; one rank runs without");
  });
  if (control.rank() == 0) {
    log::info("NCCL ", nccl_version(), ", ", set_by_user.empty() ? "no NCCL_ variables set" : set_by_user);
  }
  auto shared = std::make_unique<Shared>(control.rank(), static_cast<CudaDevice&>(device));
  Shared& lent = *shared;
  return std::make_unique<NcclComm>(control.split(0), lent, std::move(shared));
}

}  // namespace tokamak
