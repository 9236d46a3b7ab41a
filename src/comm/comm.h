// A group of ranks. Collectives of the data plane move tensors and are enqueued on a Stream, like operations; those of
// the control plane move host values and return when done. Every rank makes the same calls in the same order. A gather
// and a reduction on two streams run concurrently (lane.h). All gathers of a group use one stream, all reductions and
// exchanges another; all_reduce is in the lane of host values. Public methods check arguments and call observers, then
// a do_ method. Tensor collectives call the stream's, host values the group's. Sums are formed in f32 (f64 for f64). On
// the CPU they follow the order of the ranks, so one world size gives the same bits every time. On GPUs the order is
// NCCL's: along rings with runtime.deterministic, otherwise perhaps in a switch, in an unspecified order. On GPUs, too,
// bf16 contributions inside a node are summed in rank order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device.h"
#include "tensor/tensor.h"

namespace tokamak {

// The streams of a group's tensor collectives: gathers and reductions on two, concurrently, or all on one, which takes
// fewer resources.
enum class GroupStreams { kTwo, kOne };

class Comm {
 public:
  // Slices that collectives exchange are multiples of this many bytes.
  static constexpr int64_t kSliceAlignment = 64;

  virtual ~Comm() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // full = the slices of all ranks, one after another. `slice` may be this rank's own part of `full`.
  void all_gather(Stream& stream, Tensor slice, Tensor full);  // (n), (size n), same dtype

  // Registers all exchanged memory (MemoryKind::kExchanged) allocated so far. Its transfers are then faster.
  // Collective; all ranks must have allocated the same.
  virtual void register_memory() {}

  // slice = sum over ranks of their full[rank n .. (rank + 1) n).
  struct ReduceScatter {
    Tensor full;                // (size n) f32
    Tensor slice;               // (n) f32
    DType dtype = DType::kF32;  // in which contributions are sent
    Tensor scratch;             // (scratch_elements(n, dtype)) or more, of `dtype`; may be empty if 0 suffice
  };
  void reduce_scatter(Stream& stream, const ReduceScatter& args);
  // Elements of `dtype` that reduce_scatter needs as scratch, for slices of up to `slice` elements.
  virtual int64_t scratch_elements(int64_t slice, DType dtype) const;

  // Sends each tensor of `sends` to its peer, and receives those of the peers in `receives`. The i-th send to a rank
  // meets the i-th receive from the sender there, of the same dtype (f32, bf16) and elements, at least one. A rank may
  // send to itself. Received tensors overlap no other tensor of the call; the lists are copied. All ranks call it, also
  // those with empty lists.
  struct Transfer {
    int peer;
    Tensor tensor;
  };
  void exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives);

  // x = sum over ranks, the same bits on each; for a handful of numbers, occasionally a few thousand. NCCL forms each
  // sum in one place, and copies it.
  void all_reduce(Stream& stream, Tensor x);  // (n) f32 or f64

  void barrier();
  void broadcast(std::string& bytes, int root);
  std::vector<std::string> gather_all(const std::string& bytes);  // by rank; lengths may differ
  int64_t max(int64_t value);

  // Observes host-value calls of this group and of groups split from it later.
  class HostObserver {
   public:
    virtual ~HostObserver() = default;
    virtual void begin(const char* name) = 0;  // "barrier"
    virtual void end(const char* name) = 0;
  };
  void observe(HostObserver* observer) { host_observer_ = observer; }

  // Estimated bytes of device memory that the group takes outside any plan. pending_bytes: the part that its first
  // collectives may still take.
  virtual int64_t reserve_bytes() const { return 0; }
  virtual int64_t pending_bytes() const { return reserve_bytes(); }

  // Distance in the run between neighbours of this group: 1 for consecutive ranks, such as those of a node. It is known
  // only for the run's group and groups split from it by a function.
  int stride() const { return stride_; }

  // Ranks of one color form a group, in their order in this group. Collective. This group outlives the new one.
  std::unique_ptr<Comm> split(int color);
  // As split(int), if every rank knows every rank's color. A plan, which has only rank 0, splits this way too.
  std::unique_ptr<Comm> split(const std::function<int(int rank)>& color, GroupStreams streams = GroupStreams::kTwo);

 protected:
  virtual void do_barrier() = 0;
  virtual void do_broadcast(std::string& bytes, int root) = 0;
  virtual std::vector<std::string> do_gather_all(const std::string& bytes) = 0;
  virtual int64_t do_max(int64_t value) = 0;
  virtual std::unique_ptr<Comm> do_split(int color) = 0;
  virtual std::unique_ptr<Comm> do_split_by(const std::function<int(int rank)>& color, GroupStreams) {
    return do_split(color(rank()));
  }
  virtual void do_all_gather(Stream& stream, Tensor slice, Tensor full) = 0;
  virtual void do_reduce_scatter(Stream& stream, const ReduceScatter& args) = 0;
  virtual void do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) = 0;
  virtual void do_all_reduce(Stream& stream, Tensor x) = 0;

 private:
  HostObserver* host_observer_ = nullptr;
  int stride_ = 1;
};

inline int64_t Comm::scratch_elements(int64_t, DType) const { return 0; }

std::unique_ptr<Comm> make_single_comm();  // one rank, no library behind it

}  // namespace tokamak
