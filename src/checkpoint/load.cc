// Loading for a new number of ranks: the slices of this run are intersected, parameter by parameter, with those of the
// checkpoint. Units and layouts may differ between the two; names and shapes may not.
#include <algorithm>
#include <set>

#include "checkpoint/reader.h"
#include "dist/together.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

constexpr size_t kNamedDifferences = 5;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += str(i > 0 ? ", " : "", shape[i]);
  return text + ")";
}

bool same_shape(const Shape& a, const std::vector<int64_t>& b) {
  if (a.rank() != static_cast<int>(b.size())) return false;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a[axis] != b[static_cast<size_t>(axis)]) return false;
  }
  return true;
}

void check_same_model(const CheckpointReader& reader, const std::vector<UnitSlices>& units) {
  std::vector<std::string> differences;
  std::set<std::string> wanted;
  for (const UnitSlices& unit : units) {
    for (const FlatParam& flat : flat_params(*unit.unit)) {
      const std::string& name = flat.param->name;
      wanted.insert(name);
      const SavedParam* saved = reader.find(name);
      if (saved == nullptr) {
        differences.push_back("it has no '" + name + "'");
      } else if (!same_shape(flat.param->shape, saved->shape)) {
        differences.push_back(
            str("'", name, "' is ", shape_text(saved->shape), " there and ", flat.param->shape.text(), " here"));
      }
    }
  }
  for (const SavedUnit& unit : reader.manifest().units) {
    for (const SavedParam& param : unit.params) {
      if (wanted.count(param.name) == 0) differences.push_back("it has '" + param.name + "', this model has not");
    }
  }
  if (differences.empty()) return;
  const size_t all = differences.size();
  if (all > kNamedDifferences) {
    differences.resize(kNamedDifferences);
    differences.push_back(str("and ", all - kNamedDifferences, " more"));
  }
  fail(Kind::kCheckpoint, str(reader.directory(), " holds another model: ", join(differences, "; ")),
       "Compare the section 'model' of this run with that of the checkpoint (tokamak checkpoint inspect).");
}

void load_unit(CheckpointReader& reader, const ShardPlace& place, const UnitSlices& unit) {
  for (const KindSlice& part : unit.slices) {
    const int64_t slice = part.slice.count();
    const int64_t begin = slice * place.index;
    float* values = part.slice.as<float>();
    std::fill(values, values + slice, 0.0f);
    for (const FlatParam& flat : flat_params(*unit.unit)) {
      const int64_t first = std::max(flat.begin, begin);
      const int64_t last = std::min(flat.end, begin + slice);
      if (first >= last) continue;
      reader.read(part.kind, flat.param->name, first - flat.begin,
                  std::span(values + (first - begin), static_cast<size_t>(last - first)));
    }
  }
}

}  // namespace

void load(Comm& comm, CheckpointReader& reader, const ShardPlace& place, const std::vector<UnitSlices>& units) {
  together(comm, [&] {
    describe_units(units, place.count);  // the slices must cover their units
    check_same_model(reader, units);
    for (const UnitSlices& unit : units) load_unit(reader, place, unit);
  });
}

}  // namespace tokamak
