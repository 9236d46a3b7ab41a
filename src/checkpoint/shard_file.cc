#include "checkpoint/shard_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;  // between two ticks: a second on a disk of 1 MB/s

void write_part(SafetensorsWriter& writer, const Tensor& part, const Tick& tick) {
  auto bytes = std::span(static_cast<const std::byte*>(part.data()), part.bytes());
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kWriteBytes));
    writer.write(piece);
    writer.write_behind();
    call(tick);
    bytes = bytes.subspan(piece.size());
  }
}

}  // namespace

int64_t KindSlice::count() const {
  int64_t elements = 0;
  for (const Tensor& part : parts) elements += part.count();
  return elements;
}

std::string shard_file_name(int index, int count) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), "rank-%05d-of-%05d.safetensors", index, count);
  return buffer.data();
}

std::string shard_tensor_name(const std::string& kind, const std::string& unit) { return kind + "/" + unit; }

std::vector<SafetensorsEntry> shard_entries(const std::vector<UnitSlices>& units) {
  std::vector<SafetensorsEntry> entries;
  for (const UnitSlices& unit : units) {
    for (const KindSlice& part : unit.slices) {
      SafetensorsEntry& entry = entries.emplace_back();
      entry.name = shard_tensor_name(part.kind, unit.unit->name);
      entry.dtype = name_of(part.dtype());
      entry.shape = {part.count()};
    }
  }
  return entries;
}

std::vector<std::string> kinds_of(const std::vector<UnitSlices>& units) {
  std::vector<std::string> kinds;
  for (const UnitSlices& unit : units) {
    for (const KindSlice& part : unit.slices) {
      if (std::find(kinds.begin(), kinds.end(), part.kind) == kinds.end()) kinds.push_back(part.kind);
    }
  }
  return kinds;
}

std::vector<SavedUnit> describe_units(const std::vector<UnitSlices>& units, int shards) {
  const std::vector<std::string> kinds = kinds_of(units);
  std::map<std::string, DType> dtypes;
  std::vector<SavedUnit> saved;
  for (const UnitSlices& unit : units) {
    SavedUnit& entry = saved.emplace_back();
    entry.name = unit.unit->name;
    entry.slice = unit.slices.at(0).count();
    for (const KindSlice& part : unit.slices) {
      TOKAMAK_CHECK(part.count() == entry.slice, entry.name, ": ", part.kind);
      const DType dtype = dtypes.emplace(part.kind, part.dtype()).first->second;
      TOKAMAK_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, entry.name, ": ", name_of(dtype));
      for (const Tensor& values : part.parts) {
        TOKAMAK_CHECK(values.dtype() == dtype, entry.name, ": ", values.text());
      }
    }
    for (size_t weight = 0; const FlatParam& flat : flat_params(*unit.unit)) {
      TOKAMAK_CHECK(flat.end <= entry.slice * shards, entry.name, ": ", shards, " slices of ", entry.slice);
      SavedParam& param = entry.params.emplace_back();
      param.name = flat.param->name;
      param.begin = flat.begin;
      for (int axis = 0; axis < flat.param->shape.rank(); ++axis) param.shape.push_back(flat.param->shape[axis]);
      for (const KindSlice& part : unit.slices) {
        if (part.has(weight)) param.kinds.push_back(part.kind);
      }
      if (param.kinds == kinds) param.kinds.clear();
      ++weight;
    }
  }
  return saved;
}

FileDigest write_shard(const std::string& path, const ShardPlace& place, int64_t step,
                       const std::vector<UnitSlices>& units, const Tick& tick) {
  const SafetensorsMetadata metadata = {
      {"format", "pt"}, {"shard", str(place.index, "/", place.count)}, {"step", str(step)}};
  SafetensorsWriter writer(path, shard_entries(units), metadata, Kind::kCheckpoint);
  for (const UnitSlices& unit : units) {
    for (const KindSlice& slice : unit.slices) {
      for (const Tensor& part : slice.parts) write_part(writer, part, tick);
    }
  }
  return writer.finish();
}

}  // namespace tokamak
