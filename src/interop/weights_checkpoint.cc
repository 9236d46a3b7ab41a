#include "interop/weights_checkpoint.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/lock.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/store.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

constexpr int64_t kShardBytes = int64_t{4} << 30;  // approximate size: ranks verify files in parallel

// Describes the slices as if `shards` ranks had saved them. The tensors have no memory.
std::vector<UnitSlices> describe_slices(const ParamTable& table, int shards) {
  std::vector<UnitSlices> units;
  for (const Unit& unit : table.units) {
    UnitSlices& slices = units.emplace_back(UnitSlices{&unit, {}});
    slices.slices.push_back({"master", {Tensor(nullptr, DType::kF32, Shape{UnitLayout(unit).slice(shards)})}});
  }
  return units;
}

}  // namespace

CheckpointManifest write_weights_checkpoint(const std::string& store, const TrainingPoint& point,
                                            const ParamTable& table, const ReadParam& read, const Progress& progress) {
  const std::string directory = str(store, "/", step_name(point.state.step));
  make_directories(directory, Kind::kCheckpoint);
  const int64_t total = table.count() * size_of(DType::kF32);
  const auto shards = static_cast<int>((total + kShardBytes - 1) / kShardBytes);
  const std::vector<UnitSlices> units = describe_slices(table, shards);
  CheckpointManifest manifest;
  manifest.point = point;
  manifest.tool = TOKAMAK_VERSION;
  manifest.created = utc_timestamp();
  manifest.incarnation = current_incarnation().id;
  manifest.world_size = shards;
  manifest.kinds = kinds_of(units);
  manifest.units = describe_units(units, shards);
  int64_t done = 0;
  std::vector<float> values;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string name = shard_file_name(shard, shards);
    SafetensorsWriter writer(str(directory, "/", name), shard_entries(units),
                             {{"format", "pt"}, {"shard", str(shard, "/", shards)}, {"step", str(point.state.step)}},
                             Kind::kCheckpoint);
    for (const UnitSlices& unit : units) {
      const int64_t slice = unit.slices[0].count();
      for (int64_t at = 0; at < slice; at += kElementsAtOnce) {
        values.resize(std::min(kElementsAtOnce, slice - at));
        read_flat(*unit.unit, slice * shard + at, values, read);
        writer.write(std::as_bytes(std::span(values)));
        done += std::ssize(values) * size_of(DType::kF32);
        if (progress) progress(std::min(done, total), total);  // padding is not counted
      }
    }
    const FileDigest digest = writer.finish();
    manifest.files.push_back({name, digest.bytes, digest.xxh3_128});
  }
  write_text_atomically(str(directory, "/", kManifestName), encode_manifest(manifest), Kind::kCheckpoint);
  sync_directory(store, Kind::kCheckpoint);
  return manifest;
}

}  // namespace tokamak
