#include "comm/host_comm.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/parallel_for.h"
#include "comm/exchange.h"
#include "comm/transfers.h"

namespace tokamak {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kReducedAtOnce = int64_t{1} << 15;  // numbers received from all ranks in a round

}  // namespace

void HostComm::do_all_gather(Stream& stream, Tensor slice, Tensor full) {
  stream.run_on_host([this, slice, full] {
    gather_bytes(Lane::kGather, static_cast<const std::byte*>(slice.data()), static_cast<std::byte*>(full.data()),
                 slice.bytes());
  });
}

void HostComm::do_reduce_scatter(Stream& stream, const ReduceScatter& args) {
  stream.run_on_host([this, args] { with_act_type(args.dtype, [&]<class T>(T) { reduce_scatter_as<T>(args); }); });
}

int64_t HostComm::scratch_elements(int64_t slice, DType) const { return host_scratch_elements(size(), slice); }

void HostComm::do_exchange(Stream& stream, std::span<const Transfer> sends, std::span<const Transfer> receives) {
  const auto with_others = [&](std::span<const Transfer> all) {
    std::vector<Transfer> others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others), [&](const auto& t) { return t.peer != rank(); });
    return others;
  };
  stream.run_on_host([this, to_self = tensors_with(rank(), sends), from_self = tensors_with(rank(), receives),
                      out = with_others(sends), in = with_others(receives)] {
    copy_each(to_self, from_self);
    exchange_tensors(Lane::kReduce, out, in);
  });
}

void HostComm::do_all_reduce(Stream& stream, Tensor x) {
  stream.run_on_host([this, x] {
    if (x.dtype() == DType::kF64) return all_reduce_as(x.as<double>(), x.count());
    all_reduce_as(x.as<float>(), x.count());  // checks the dtype
  });
}

// In each round every rank sends each other rank its contributions to that rank's slice, then sums those it received.
template <class T>
void HostComm::reduce_scatter_as(const ReduceScatter& args) {
  const int ranks = size();
  const int64_t length = args.slice.count();
  const int64_t longest = ExchangeRounds{ranks, length, ExchangeRounds::kHostElements}.longest_piece();
  auto* const send = args.scratch.as<T>();
  const float* contributions = args.full.as<float>();
  float* sum = args.slice.as<float>();
  for (int64_t begin = 0; begin < length; begin += longest) {
    const int64_t piece = std::min(longest, length - begin);
    const int64_t bytes = piece * static_cast<int64_t>(sizeof(T));
    T* const received = send + ranks * piece;
    for (int to = 0; to < ranks; ++to) {
      parallel_for(piece, kGrain, [&](int64_t first, int64_t last) {
        const float* from = contributions + to * length + begin;
        for (int64_t i = first; i < last; ++i) send[to * piece + i] = from_float<T>(from[i]);
      });
    }
    exchange_bytes(Lane::kReduce, reinterpret_cast<const std::byte*>(send), reinterpret_cast<std::byte*>(received),
                   bytes);
    parallel_for(piece, kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        float total = 0;
        for (int from = 0; from < ranks; ++from) total += to_float(received[from * piece + i]);
        sum[begin + i] = total;
      }
    });
  }
}

// Works in rounds, so that received data stay small, for any number of ranks and elements.
template <class T>
void HostComm::all_reduce_as(T* x, int64_t count) {
  const int64_t longest = std::min(count, std::max(kReducedAtOnce / size(), int64_t{1}));
  std::vector<T> all(longest * size());
  for (int64_t begin = 0; begin < count; begin += longest) {
    const int64_t piece = std::min(longest, count - begin);
    gather_bytes(Lane::kHost, reinterpret_cast<const std::byte*>(x + begin), reinterpret_cast<std::byte*>(all.data()),
                 piece * static_cast<int64_t>(sizeof(T)));
    for (int64_t i = 0; i < piece; ++i) {
      T total = 0;
      for (int from = 0; from < size(); ++from) total += all[from * piece + i];
      x[begin + i] = total;
    }
  }
}

}  // namespace tokamak
