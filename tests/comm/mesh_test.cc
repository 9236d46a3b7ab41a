// The groups of a mesh: who is in which, that they exchange concurrently, and that a plan's mesh has the same sizes.
#include "comm/mesh.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "comm/no_stream.h"
#include "comm/plan_comm.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

Tensor view(std::vector<float>& values) {
  return {values.data(), DType::kF32, Shape{static_cast<int64_t>(values.size())}};
}

// Sums in place, as gradients are summed over the replicas.
void sum_in_place(Comm& comm, std::vector<float>& values) {
  NoStream stream;
  const int64_t part = static_cast<int64_t>(values.size()) / comm.size(), begin = part * comm.rank();
  std::vector<float> scratch(static_cast<size_t>(comm.scratch_elements(part, DType::kF32)));
  const Tensor own = view(values).flat(begin, begin + part);
  comm.reduce_scatter(stream, {.full = view(values), .slice = own, .scratch = view(scratch)});
  comm.all_gather(stream, own, view(values));
}

}  // namespace

RANKS_CASE("consecutive ranks form a shard group; those with the same place in theirs are replicas of each other") {
  const int ranks = world.size();
  for (int replicas = 1; replicas <= ranks; ++replicas) {
    if (ranks % replicas != 0) continue;
    const MeshGroups groups(world.comm(), replicas);
    const Mesh& mesh = groups.mesh();
    const int shards = ranks / replicas;
    CHECK(mesh.world().size() == ranks);
    CHECK(mesh.shard().size() == shards);
    CHECK(mesh.shard().rank() == world.rank() % shards);
    CHECK(mesh.replicas() == replicas);
    CHECK(mesh.shard().stride() == 1);
    if (replicas > 1) CHECK(mesh.replicate().stride() == shards);
    CHECK(mesh.replica() == world.rank() / shards);

    // Each rank contributes a different power of two, so that a sum shows which ranks are in it.
    std::vector<float> in_shard(64 * 12, std::ldexp(1.0f, world.rank())), over_replicas = in_shard, all = in_shard;
    sum_in_place(mesh.shard(), in_shard);
    if (replicas > 1) sum_in_place(mesh.replicate(), over_replicas);
    sum_in_place(mesh.world(), all);
    float of_shard = 0, of_replicas = 0, of_all = 0;
    for (int r = 0; r < ranks; ++r) {
      const float one = std::ldexp(1.0f, r);
      if (r / shards == world.rank() / shards) of_shard += one;
      if (r % shards == world.rank() % shards) of_replicas += one;
      of_all += one;
    }
    CHECK(in_shard == std::vector<float>(in_shard.size(), of_shard));
    CHECK(over_replicas == std::vector<float>(in_shard.size(), of_replicas));
    CHECK(all == std::vector<float>(in_shard.size(), of_all));
  }
}

RANKS_CASE(
    "consecutive ranks read the same samples; one of each such group makes a data group, in which shards and replicas lie") {
  if (world.size() != 4) return;
  for (const int replicas : {1, 2}) {
    const MeshGroups groups(world.comm(), replicas, 2);
    const Mesh& mesh = groups.mesh();
    CHECK(mesh.world().size() == 4);
    CHECK(mesh.data().size() == 2);
    CHECK(mesh.data().rank() == world.rank() / 2);
    CHECK(mesh.reader() == world.rank() % 2);
    CHECK(mesh.shard().size() == 2 / replicas);
    CHECK(mesh.replicas() == replicas);
    std::vector<float> sum(64 * 2, std::ldexp(1.0f, world.rank()));
    sum_in_place(mesh.data(), sum);
    CHECK(sum == std::vector<float>(sum.size(), world.rank() % 2 == 0 ? 1 + 4 : 2 + 8));
  }
  CHECK_THROWS_AS(MeshGroups(world.comm(), 2, 4), Error);
}

RANKS_CASE("replicas that do not divide the ranks are a bug") {
  const int ranks = world.size();
  CHECK_THROWS_AS(MeshGroups(world.comm(), ranks + 1), Error);
  CHECK_THROWS_AS(MeshGroups(world.comm(), 0), Error);
}

TEST_CASE("a plan's mesh has the groups of a run's, though only its first rank is there") {
  const Backend backend = make_cpu_backend();
  const auto ranks = make_plan_comm(12, *backend.device);
  for (const int replicas : {1, 2, 3, 12}) {
    const MeshGroups groups(*ranks, replicas);
    const Mesh& mesh = groups.mesh();
    CHECK(mesh.world().size() == 12);
    CHECK(mesh.shard().size() == 12 / replicas);
    CHECK(mesh.replicas() == replicas);
    CHECK(mesh.replica() == 0);
  }
}
