// Loads a checkpoint on any number of ranks: intersects this run's slices with the saved ones, parameter by parameter.
// Units and layouts may differ between the two; names and shapes may not.
#include <algorithm>
#include <set>

#include "base/bf16.h"
#include "base/listed.h"
#include "base/log.h"
#include "base/printable.h"
#include "checkpoint/reader.h"
#include "comm/collective_error.h"
#include "formats/flat_slice.h"
#include "tensor/state_kinds.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

constexpr int64_t kPieceElements = int64_t{1} << 20;  // f32 elements in memory at a time

void read_rounded(const Unit& unit, int64_t begin, const Tensor& part, const ReadParam& read) {
  std::vector<float> values(std::min(part.count(), kPieceElements));
  for (int64_t at = 0; at < part.count(); at += kPieceElements) {
    const auto piece = std::span(values).first(std::min(part.count() - at, kPieceElements));
    read_flat(unit, begin + at, piece, read);
    std::transform(piece.begin(), piece.end(), part.as<bf16>() + at, [](float x) { return bf16(x); });
  }
}

// Whether the slice's elements of the weight come from the checkpoint; otherwise they are zero. Averages go with the
// masters: the optimizer may start over without them.
bool is_read(const KindSlice& slice, size_t weight, LoadKinds kinds) {
  const bool is_weights = slice.kind == "master" || starts_with(slice.kind, kAveragePrefix);
  return slice.has(weight) && (kinds == LoadKinds::kAll || is_weights);
}

void load_unit(CheckpointReader& reader, const ShardPlace& place, const UnitSlices& unit, LoadKinds kinds) {
  for (const KindSlice& slice : unit.slices) {
    std::set<std::string> wanted;
    for (size_t weight = 0; const FlatParam& flat : flat_params(*unit.unit)) {
      if (is_read(slice, weight++, kinds)) wanted.insert(flat.param->name);
    }
    const auto read = [&](const std::string& name, int64_t first, std::span<float> out) {
      if (wanted.count(name) > 0) return reader.read(slice.kind, name, first, out);
      std::fill(out.begin(), out.end(), 0.0f);
    };
    int64_t begin = slice.count() * place.index;
    for (const Tensor& part : slice.parts) {
      if (part.dtype() == DType::kF32) {
        read_flat(*unit.unit, begin, std::span(part.as<float>(), part.count()), read);
      } else {
        read_rounded(*unit.unit, begin, part, read);
      }
      begin += part.count();
    }
  }
}

// Kinds that are F32 in the checkpoint and bf16 in this run.
std::vector<std::string> rounded_kinds(const CheckpointReader& reader, const std::vector<UnitSlices>& units) {
  std::vector<std::string> rounded;
  for (const UnitSlices& unit : units) {
    for (const KindSlice& slice : unit.slices) {
      if (slice.dtype() != DType::kBF16 || std::find(rounded.begin(), rounded.end(), slice.kind) != rounded.end()) {
        continue;
      }
      if (reader.stored_dtype(slice.kind) == "F32") rounded.push_back(slice.kind);
    }
  }
  return rounded;
}

}  // namespace

void check_same_model(const CheckpointReader& reader, const std::vector<const Unit*>& units) {
  std::vector<std::string> differences;
  std::set<std::string> wanted;
  for (const Unit* unit : units) {
    for (const FlatParam& flat : flat_params(*unit)) {
      const std::string& name = flat.param->name;
      wanted.insert(name);
      const SavedParam* saved = reader.find(name);
      if (saved == nullptr) {
        differences.push_back(str("it has no '", printable(name), "'"));
      } else if (flat.param->shape.text() != saved->shape_text()) {
        differences.push_back(
            str("'", name, "' is ", printable(saved->shape_text()), " there and ", flat.param->shape.text(), " here"));
      }
    }
  }
  for (const SavedUnit& unit : reader.manifest().units) {
    for (const SavedParam& param : unit.params) {
      if (wanted.count(param.name) == 0)
        differences.push_back(str("it has '", printable(param.name), "', this model has not"));
    }
  }
  if (differences.empty()) return;
  fail(Kind::kCheckpoint, str(reader.directory(), " holds another model:", listed(std::move(differences))),
       "Compare the section 'model' of this run with that of the checkpoint (tokamak checkpoint inspect).");
}

std::string missing_state(const CheckpointReader& reader, const std::vector<UnitSlices>& units) {
  const CheckpointManifest& manifest = reader.manifest();
  for (const UnitSlices& unit : units) {
    for (const KindSlice& slice : unit.slices) {
      for (size_t weight = 0; const FlatParam& flat : flat_params(*unit.unit)) {
        const SavedParam* saved = slice.has(weight++) ? reader.find(flat.param->name) : nullptr;
        if (saved == nullptr || manifest.has(*saved, slice.kind)) continue;
        const std::vector<std::string>& held = saved->kinds.empty() ? manifest.kinds : saved->kinds;
        return str("has no '", slice.kind, "' of '", flat.param->name, "', only ", printable(join(held, ", ")));
      }
    }
  }
  return "";
}

void load(Comm& comm, CheckpointReader& reader, const ShardPlace& place, const std::vector<UnitSlices>& units,
          LoadKinds kinds) {
  collectively(comm, [&] {
    describe_units(units, place.count);  // the slices must cover their units
    std::vector<const Unit*> own;
    for (const UnitSlices& unit : units) own.push_back(unit.unit);
    check_same_model(reader, own);
    // An imported model has weights only: before the first step the optimizer's state is zero.
    const bool only_weights = reader.manifest().point.state.step == 0 && !missing_state(reader, units).empty();
    const LoadKinds read = only_weights ? LoadKinds::kMasters : kinds;
    for (const UnitSlices& unit : units) load_unit(reader, place, unit, read);
    if (comm.rank() != 0 || read == LoadKinds::kMasters) return;
    const std::vector<std::string> rounded = rounded_kinds(reader, units);
    if (rounded.empty()) return;
    log::info(join(rounded, " and "), ": F32 in ", reader.directory(), ", rounded to the nearest BF16 for this run");
  });
}

}  // namespace tokamak
