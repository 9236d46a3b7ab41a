// The groups in which the ranks of a run share samples and state. A data group has one rank for each share of the
// samples. Ranks that read the same share are in different data groups. A shard group holds one copy of the state, and
// the copies are replicas (hybrid sharding, HSDP: Zhao et al. 2023, PyTorch FSDP, section 3.2.2). Consecutive ranks
// form a shard group, so it lies inside a node if its size divides the node's ranks. A replicate group joins the ranks
// that hold the same slice, one of each replica.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/comm.h"

namespace tokamak {

// A view of the groups, which outlive it.
class Mesh {
 public:
  // A mesh in which all ranks are one shard group and read different samples. Implicit, for callers without replicas.
  Mesh(Comm& world) : Mesh(world, world, world, nullptr) {}  // NOLINT(google-explicit-constructor)

  Comm& world() const { return *world_; }
  // Its rank and size determine this rank's samples. Its sums count each sample once.
  Comm& data() const { return *data_; }
  int readers() const { return world_->size() / data_->size(); }  // ranks that read the same samples
  int reader() const { return world_->rank() % readers(); }       // this rank's number among these
  Comm& shard() const { return *shard_; }                         // the ranks of its copy of the state
  Comm& replicate() const { return *replicate_; }  // the ranks with this rank's slice; only with several replicas

  int replicas() const { return replicate_ == nullptr ? 1 : replicate_->size(); }
  int replica() const { return replicate_ == nullptr ? 0 : replicate_->rank(); }  // this rank's
  // The ranks of data() are the shard groups, one replica after another.
  int replica_of(int data_rank) const { return data_rank / shard_->size(); }
  int shard_rank_of(int data_rank) const { return data_rank % shard_->size(); }

  // The sum over all groups of what Comm's methods of these names return.
  int64_t reserve_bytes() const { return sum(&Comm::reserve_bytes); }
  int64_t pending_bytes() const { return sum(&Comm::pending_bytes); }

 private:
  friend class MeshGroups;
  int64_t sum(int64_t (Comm::*bytes)() const) const;
  Mesh(Comm& world, Comm& data, Comm& shard, Comm* replicate)
      : world_(&world), data_(&data), shard_(&shard), replicate_(replicate) {}

  Comm* world_;
  Comm* data_;
  Comm* shard_;
  Comm* replicate_;  // nullptr: one replica
};

// Owns the groups other than the world.
class MeshGroups {
 public:
  // Each `readers` consecutive ranks of `world`, which outlives this, read the same samples. The data group has
  // `replicas` copies of the state. readers * replicas divides the number of ranks. Collective.
  MeshGroups(Comm& world, int replicas, int readers = 1);

  const Mesh& mesh() const { return mesh_; }

 private:
  std::unique_ptr<Comm> data_, shard_, replicate_;  // nullptr if the group equals a larger one
  Mesh mesh_;
};

}  // namespace tokamak
