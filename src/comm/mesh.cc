#include "comm/mesh.h"

#include "base/error.h"

namespace tokamak {

int64_t Mesh::sum(int64_t (Comm::*bytes)() const) const {
  int64_t total = (world_->*bytes)();
  if (data_ != world_) total += (data_->*bytes)();
  if (shard_ != data_) total += (shard_->*bytes)();
  if (replicate_ != nullptr && replicate_ != data_) total += (replicate_->*bytes)();
  return total;
}

MeshGroups::MeshGroups(Comm& world, int replicas, int readers) : mesh_(world) {
  TOKAMAK_CHECK(readers >= 1 && replicas >= 1 && world.size() % (readers * replicas) == 0, world.size(), " ranks in ",
                replicas, " replicas, ", readers, " of them with the same samples");
  if (readers > 1) data_ = world.split([=](int rank) { return rank % readers; });
  Comm& data = data_ ? *data_ : world;
  mesh_ = Mesh(world, data, data, nullptr);
  if (replicas == 1) return;
  const int shards = data.size() / replicas;
  if (shards == 1) {
    shard_ = make_single_comm();
    mesh_ = Mesh(world, data, *shard_, &data);
    return;
  }
  shard_ = data.split([=](int rank) { return rank / shards; });
  // This group has one stream, since a reduction makes all its transfers: it sums parts of a slice, then gathers them.
  replicate_ = data.split([=](int rank) { return rank % shards; }, GroupStreams::kOne);
  mesh_ = Mesh(world, data, *shard_, replicate_.get());
}

}  // namespace tokamak
