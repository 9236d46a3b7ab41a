// Tensor collectives that may run concurrently use lanes, each with its own order and connections, so that a call in
// one never waits for another. Inside a lane all ranks make the same calls in the same order.
#pragma once

#include <cstddef>

namespace tokamak {

// kHost: host values and all_reduce, on the training thread; kGather: all_gather; kReduce: reduce_scatter and exchange.
enum class Lane { kHost, kGather, kReduce };
constexpr size_t kLanes = 3;

}  // namespace tokamak
