#include "comm/mesh.h"

#include "base/error.h"

namespace tokamak {

int64_t Mesh::reserve_bytes() const {
  int64_t bytes = world_->reserve_bytes();
  if (shard_ != world_) bytes += shard_->reserve_bytes();
  if (replicate_ != nullptr && replicate_ != world_) bytes += replicate_->reserve_bytes();
  return bytes;
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
  replicate_ = world.split([=](int rank) { return rank % shards; });
  mesh_ = Mesh(world, *shard_, replicate_.get());
}

}  // namespace tokamak
