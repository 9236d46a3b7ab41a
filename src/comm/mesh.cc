#include "comm/mesh.h"

#include "base/error.h"

namespace tokamak {

int64_t Mesh::sum(int64_t (Comm::*bytes)() const) const {
  int64_t total = (world_->*bytes)();
  if (shard_ != world_) total += (shard_->*bytes)();
  if (replicate_ != nullptr && replicate_ != world_) total += (replicate_->*bytes)();
  return total;
}

MeshGroups::MeshGroups(Comm& world, int replicas) : mesh_(world) {
  TOKAMAK_CHECK(replicas >= 1 && world.size() % replicas == 0, world.size(), " ranks in ", replicas, " replicas");
  if (replicas == 1) return;
  const int shards = world.size() / replicas;
  if (shards == 1) {
    shard_ = make_single_comm();
    mesh_ = Mesh(world, *shard_, &world);
    return;
  }
  shard_ = world.split([=](int rank) { return rank / shards; });
  // One stream, since all its transfers belong to one reduction: the sums of parts of a slice, then these parts.
  replicate_ = world.split([=](int rank) { return rank % shards; }, GroupStreams::kOne);
  mesh_ = Mesh(world, *shard_, replicate_.get());
}

}  // namespace tokamak
