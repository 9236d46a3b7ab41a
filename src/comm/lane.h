// Collectives of tensors that may run at the same time go in lanes of their own, each with its own order and its own
// connections: what is called in one never waits for another. Inside a lane all ranks call the same, in the same order.
#pragma once

#include <cstddef>

namespace tokamak {

// kHost: host values and all_reduce, by the thread that trains; kGather: all_gather; kReduce: reduce_scatter.
enum class Lane { kHost, kGather, kReduce };
constexpr size_t kLanes = 3;

}  // namespace tokamak
