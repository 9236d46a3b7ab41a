// Each collective checks its arguments, calls the observers, then the implementation's method.
#include "comm/comm.h"

#include "backend/observer.h"
#include "base/error.h"
#include "comm/transfers.h"

namespace tokamak {

namespace {

// `bytes` is what each rank sends to each other rank.
Call collective(const char* name, const Comm& comm, const Operands& operands, int64_t bytes) {
  const auto all = double((comm.size() - 1) * bytes);
  return {.kind = CallKind::kCollective,
          .name = name,
          .operands = operands,
          .ranks = comm.size(),
          .stride = comm.stride(),
          .exchanged = all,
          .received = all};
}

// A list of transfers, summed: observers see any number of tensors as one of each dtype.
struct TransferSums {
  Tensor f32, bf16;  // at the first such tensor; empty without one
  double bytes = 0;  // to or from other ranks

  void add(std::span<const Comm::Transfer> transfers, int rank) {
    for (const auto& [peer, tensor] : transfers) {
      Tensor& sum = tensor.dtype() == DType::kF32 ? f32 : bf16;
      const int64_t before = sum ? sum.count() : 0;
      sum = Tensor(sum ? sum.data() : tensor.data(), tensor.dtype(), Shape{before + tensor.count()});
      bytes += peer == rank ? 0 : double(tensor.bytes());
    }
  }
};

void expect_transfers(const Comm& comm, std::span<const Comm::Transfer> transfers) {
  for (const auto& [peer, tensor] : transfers) {
    TOKAMAK_CHECK(0 <= peer && peer < comm.size(), "a transfer with rank ", peer, " of ", comm.size());
    TOKAMAK_CHECK(tensor && tensor.count() > 0, "an empty transfer with rank ", peer);
    TOKAMAK_CHECK(tensor.dtype() == DType::kF32 || tensor.dtype() == DType::kBF16, tensor.text());
  }
}

void expect_slice(const Comm& comm, const Tensor& slice, const Tensor& full, DType narrowest) {
  TOKAMAK_CHECK(slice.dtype() == full.dtype() && slice.count() * comm.size() == full.count(), "a slice ", slice.text(),
                " of ", full.text(), " on ", comm.size(), " rank(s)");
  TOKAMAK_CHECK(slice.count() * size_of(narrowest) % Comm::kSliceAlignment == 0, "a slice ", slice.text(),
                ", which is not a multiple of ", Comm::kSliceAlignment, " bytes of ", name_of(narrowest));
}

// Reports the begin of a call of host values when constructed, and its end when destroyed.
class HostCall {
 public:
  HostCall(Comm::HostObserver* observer, const char* name) : observer_(observer), name_(name) {
    if (observer_ != nullptr) observer_->begin(name_);
  }
  ~HostCall() {
    if (observer_ != nullptr) observer_->end(name_);
  }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

 private:
  Comm::HostObserver* const observer_;
  const char* const name_;
};

}  // namespace

void Comm::barrier() {
  const HostCall call(host_observer_, "barrier");
  do_barrier();
}

void Comm::broadcast(std::string& bytes, int root) {
  const HostCall call(host_observer_, "broadcast");
  do_broadcast(bytes, root);
}

std::vector<std::string> Comm::gather_all(const std::string& bytes) {
  const HostCall call(host_observer_, "gather_all");
  return do_gather_all(bytes);
}

int64_t Comm::max(int64_t value) {
  const HostCall call(host_observer_, "max");
  return do_max(value);
}

std::unique_ptr<Comm> Comm::split(int color) {
  const HostCall call(host_observer_, "split");
  std::unique_ptr<Comm> part = do_split(color);
  if (part != nullptr) part->observe(host_observer_);
  return part;
}

std::unique_ptr<Comm> Comm::split(const std::function<int(int rank)>& color, GroupStreams streams) {
  const HostCall call(host_observer_, "split");
  std::unique_ptr<Comm> part = do_split_by(color, streams);
  if (part == nullptr) return part;
  part->observe(host_observer_);
  const auto next_of_this_color = [&](int from) {
    while (from < size() && color(from) != color(rank())) ++from;
    return from;
  };
  const int first = next_of_this_color(0), second = next_of_this_color(first + 1);
  part->stride_ = second < size() ? stride_ * (second - first) : 1;
  return part;
}

void Comm::all_gather(Stream& stream, Tensor slice, Tensor full) {
  expect_slice(*this, slice, full, slice.dtype());
  const auto call = [&] {
    return collective("all_gather", *this, {{"slice", &slice}, {"full", &full, Access::kWrite}}, slice.bytes());
  };
  observed(stream, call, [&] { do_all_gather(stream, slice, full); });
}

void Comm::reduce_scatter(Stream& stream, const ReduceScatter& args) {
  Tensor full = args.full, slice = args.slice;
  TOKAMAK_CHECK(full.dtype() == DType::kF32, full.text());
  expect_slice(*this, slice, full, DType::kBF16);
  const int64_t scratch = scratch_elements(slice.count(), args.dtype);
  TOKAMAK_CHECK(scratch == 0 || (args.scratch && args.scratch.count() >= scratch), "a slice ", slice.text(),
                " takes a scratch of ", scratch, ", not ", args.scratch.text());
  const auto call = [&] {
    return collective("reduce_scatter", *this, {{"full", &full}, {"slice", &slice, Access::kWrite}},
                      slice.count() * size_of(args.dtype));
  };
  observed(stream, call, [&] { do_reduce_scatter(stream, args); });
}

void Comm::exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) {
  expect_transfers(*this, sends);
  expect_transfers(*this, receives);
  TOKAMAK_CHECK(meet(tensors_with(rank(), sends), tensors_with(rank(), receives)), "rank ", rank(),
                " receives something else from itself than it sends");
  TransferSums sent, received;
  const auto call = [&] {
    sent.add(sends, rank());
    received.add(receives, rank());
    const Operands operands{{"sends", &sent.f32},
                            {"sends", &sent.bf16},
                            {"receives", &received.f32, Access::kWrite},
                            {"receives", &received.bf16, Access::kWrite}};
    Call made = collective("exchange", *this, operands, 0);
    made.exchanged = sent.bytes;
    made.received = received.bytes;
    return made;
  };
  observed(stream, call, [&] { do_exchange(stream, sends, receives); });
}

void Comm::all_reduce(Stream& stream, Tensor x) {
  TOKAMAK_CHECK(x.dtype() == DType::kF32 || x.dtype() == DType::kF64, x.text());
  const auto call = [&] { return collective("all_reduce", *this, {{"x", &x, Access::kReadWrite}}, x.bytes()); };
  observed(stream, call, [&] { do_all_reduce(stream, x); });
}

}  // namespace tokamak
