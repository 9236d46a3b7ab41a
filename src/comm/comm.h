// A group of ranks. Collectives of the data plane are enqueued on a Stream, like operations, and move tensors;
// those of the control plane move host values and return when done. Every rank calls the same ones in the same order.
// A gather and a reduction on two streams run at the same time: neither waits for the other (lane.h; all gathers of a group
// go on one stream, all reductions on one, all_reduce where host values are exchanged). Collectives of tensors pass
// public methods that check their arguments, show them to the stream's observers and call a do_ method; those of host
// values show themselves to the group's own observer.
// Sums are formed in f32 (f64 for f64), on the CPU in the order of the ranks: for one world size the bits are the same
// every time. On GPUs the order is NCCL's: along rings with runtime.deterministic, else perhaps in a switch, in an order
// that NCCL does not state; inside a node, contributions in bf16 are summed in the order of the ranks there too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/device.h"
#include "tensor/tensor.h"

namespace tokamak {

// The streams that a group's collectives of tensors go on: gathers on one and reductions on another, at the same time, or
// all of them on one, which takes fewer resources.
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

  // The exchanged memory (MemoryKind::kExchanged) that is taken by now is about to be used: it moves best where the
  // group knows it beforehand. Collective; all ranks have taken the same.
  virtual void register_memory() {}

  // slice = sum over ranks of their full[rank n .. (rank + 1) n).
  struct ReduceScatter {
    Tensor full;                // (size n) f32
    Tensor slice;               // (n) f32
    DType dtype = DType::kF32;  // of each contribution on its way
    Tensor scratch;             // (scratch_elements(n, dtype)) or more, of `dtype`; none where none is asked for
  };
  void reduce_scatter(Stream& stream, const ReduceScatter& args);
  // Elements of `dtype` that reduce_scatter works in, for slices of up to `slice` elements.
  virtual int64_t scratch_elements(int64_t slice, DType dtype) const;

  // x = sum over ranks, for a handful of numbers, or a few thousand now and then.
  void all_reduce(Stream& stream, Tensor x);  // (n) f32 or f64

  void barrier();
  void broadcast(std::string& bytes, int root);
  std::vector<std::string> gather_all(const std::string& bytes);  // by rank; lengths may differ
  int64_t max(int64_t value);

  // Sees the calls of host values of this group and of groups split from it later. nullptr: nobody does.
  class HostObserver {
   public:
    virtual ~HostObserver() = default;
    virtual void begin(const char* name) = 0;  // "barrier"
    virtual void end(const char* name) = 0;
  };
  void observe(HostObserver* observer) { host_observer_ = observer; }

  // Bytes of the device that the group takes outside of any plan, about; and those of them that it has not taken yet, but
  // may at its first collectives.
  virtual int64_t reserve_bytes() const { return 0; }
  virtual int64_t pending_bytes() const { return reserve_bytes(); }

  // How far two neighbours of this group are apart in the run: 1 for consecutive ranks, such as those of a node. Known of
  // the run's group, and of those that are split off it by a function.
  int apart() const { return apart_; }

  // Ranks of one color form a group, in the order of their ranks here. Collective. This one outlives it.
  std::unique_ptr<Comm> split(int color);
  // The same where every rank knows every rank's color: so a plan's ranks, of which only one is there, split too.
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
  virtual void do_all_reduce(Stream& stream, Tensor x) = 0;

 private:
  HostObserver* host_observer_ = nullptr;
  int apart_ = 1;
};

inline int64_t Comm::scratch_elements(int64_t, DType) const { return 0; }

std::unique_ptr<Comm> make_single_comm();  // one rank, no library behind it

}  // namespace tokamak
