// The groups in which the ranks of a run share the state. A shard group holds one copy of it, and the copies are
// replicas (hybrid sharding, HSDP: Zhao et al. 2023, PyTorch FSDP, section 3.2.2). Consecutive ranks form a shard
// group, which is therefore inside a node if its size divides the node's. A replicate group joins the ranks that hold
// the same slice, one of each replica.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/comm.h"

namespace tokamak {

// A view of the groups, which outlive it.
class Mesh {
 public:
  // All ranks are one shard group. Implicit, for callers without replicas.
  Mesh(Comm& world) : Mesh(world, world, nullptr) {}  // NOLINT(google-explicit-constructor)

  Comm& world() const { return *world_; }
  Comm& shard() const { return *shard_; }          // this rank's copy of the state
  Comm& replicate() const { return *replicate_; }  // the ranks with this rank's slice; only with several replicas

  int replicas() const { return replicate_ == nullptr ? 1 : replicate_->size(); }
  int replica() const { return replicate_ == nullptr ? 0 : replicate_->rank(); }  // this rank's

  // Device memory of all groups, as Comm's methods of these names.
  int64_t reserve_bytes() const { return sum(&Comm::reserve_bytes); }
  int64_t pending_bytes() const { return sum(&Comm::pending_bytes); }

 private:
  friend class MeshGroups;
  int64_t sum(int64_t (Comm::*bytes)() const) const;
  Mesh(Comm& world, Comm& shard, Comm* replicate) : world_(&world), shard_(&shard), replicate_(replicate) {}

  Comm* world_;
  Comm* shard_;
  Comm* replicate_;  // nullptr: one replica
};

// Owns the groups other than the world.
class MeshGroups {
 public:
  // `replicas` divides the ranks of `world`, which outlives this. Collective.
  MeshGroups(Comm& world, int replicas);

  const Mesh& mesh() const { return mesh_; }

 private:
  std::unique_ptr<Comm> shard_, replicate_;  // absent if the group is the world
  Mesh mesh_;
};

}  // namespace tokamak
