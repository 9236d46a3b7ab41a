// One rank's file of a checkpoint, in the format of safetensors_header.h: its flat slices, named "<kind>/<unit>", 1-D
// F32 or BF16. All slices of a kind have one dtype. A unit lacks the kinds that none of its weights has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tick.h"
#include "checkpoint/manifest.h"
#include "formats/safetensors.h"
#include "tensor/param_table.h"
#include "tensor/tensor.h"

namespace tokamak {

// The slice of every unit that a rank holds.
struct ShardPlace {
  int index = 0;
  int count = 1;       // slices of a unit: as many as ranks share one copy of the state
  bool writes = true;  // hybrid sharding: false on the ranks of every replica but the first
};

struct KindSlice {
  std::string kind;  // "master", or a moment of the optimizer: "exp_avg"
  // (slice) f32 or bf16, one dtype, in host memory, in one or several parts
  std::vector<Tensor> parts;
  std::vector<bool> weights = {};  // which of the unit's weights have this kind (flat_params); empty: all

  bool has(size_t weight) const { return weights.empty() || weights.at(weight); }
  int64_t count() const;  // elements
  DType dtype() const { return parts.front().dtype(); }
};

// This rank's slices of one unit, "master" first. All ranks give the same units, kinds and lengths.
struct UnitSlices {
  const Unit* unit = nullptr;
  std::vector<KindSlice> slices;
};

std::string shard_file_name(int index, int count);  // "rank-00000-of-00004.safetensors"
std::string shard_tensor_name(const std::string& kind, const std::string& unit);

// The tensors of a shard's file, in order.
std::vector<SafetensorsEntry> shard_entries(const std::vector<UnitSlices>& units);

// Returns the manifest's entries for these units. CHECKs that units agree in dtypes, and slices cover them.
std::vector<SavedUnit> describe_units(const std::vector<UnitSlices>& units, int shards);
std::vector<std::string> kinds_of(const std::vector<UnitSlices>& units);  // each once, in order

// Writes, syncs and closes the file. The checksum is computed from the bytes in memory.
FileDigest write_shard(const std::string& path, const ShardPlace& place, int64_t step,
                       const std::vector<UnitSlices>& units, const Tick& tick = {});

}  // namespace tokamak
