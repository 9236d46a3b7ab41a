// Base of every Comm over host memory: a tensor collective exchanges bytes, then sums them from rank 0 on, in the order
// of its stream. The transport (MPI, sockets) does not affect the bits.
#pragma once

#include <cstddef>

#include "comm/comm.h"
#include "comm/lane.h"

namespace tokamak {

class HostComm : public Comm {
 public:
  int64_t scratch_elements(int64_t slice, DType dtype) const final;

 protected:
  void do_all_gather(Stream& stream, Tensor slice, Tensor full) final;
  void do_reduce_scatter(Stream& stream, const ReduceScatter& args) final;
  void do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) final;
  void do_all_reduce(Stream& stream, Tensor x) final;

  // all = `bytes` bytes of every rank, one after another. `own` may be this rank's part of `all`.
  virtual void gather_bytes(Lane lane, const std::byte* own, std::byte* all, int64_t bytes) = 0;

  // Rank r receives the r-th `bytes` bytes of every rank's `outgoing`, by rank, in `incoming`.
  virtual void exchange_bytes(Lane lane, const std::byte* outgoing, std::byte* incoming, int64_t bytes) = 0;

  // As exchange(), between different ranks.
  virtual void exchange_tensors(Lane lane, std::span<const Transfer> sends, std::span<const Transfer> receives) = 0;

 private:
  template <class T>
  void reduce_scatter_as(const ReduceScatter& args);
  template <class T>
  void all_reduce_as(T* x, int64_t count);
};

}  // namespace tokamak
