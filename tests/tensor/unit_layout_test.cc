#include "tensor/unit_layout.h"

#include <catch2/catch.hpp>

#include "base/error.h"

using namespace tokamak;

namespace {

Unit awkward_unit() {
  return {UnitKind::kLayer,
          "layer.0",
          {{"qkv", {{"q", Shape{3, 7}}, {"k", Shape{2, 7}}}}, {"o", {{"o", Shape{7, 3}}}}, {"n", {{"n", Shape{5}}}}}};
}

}  // namespace

TEST_CASE("matrices begin aligned, and fused weights lie without a gap") {
  const Unit unit = awkward_unit();
  const UnitLayout layout(unit);
  CHECK(layout.offsets == std::vector<int64_t>{0, 64, 128});
  CHECK(layout.count == 133);
  const auto flat = flat_params(unit);
  REQUIRE(flat.size() == 4);
  CHECK((flat[0].begin == 0 && flat[0].end == 21));
  CHECK((flat[1].begin == 21 && flat[1].end == 35));
  CHECK((flat[2].begin == 64 && flat[2].end == 85));
  CHECK((flat[3].begin == 128 && flat[3].end == 133));
}

TEST_CASE("slices of any number of ranks are equal, aligned and cover the unit") {
  for (int64_t count = 1; count <= 700; ++count) {
    const UnitLayout layout(Unit{UnitKind::kLayer, "layer.0", {{"m", {{"m", Shape{count}}}}}});
    for (int ranks = 1; ranks <= 9; ++ranks) {
      const int64_t slice = layout.slice(ranks);
      REQUIRE(slice % UnitLayout::kAlignment == 0);
      REQUIRE(slice * ranks >= count);
      REQUIRE((slice - UnitLayout::kAlignment) * ranks < count);  // no more padding than it takes
    }
  }
}

TEST_CASE("a fused matrix has the rows of its parts") {
  const Unit unit = awkward_unit();
  CHECK(unit.matrices[0].shape() == Shape{5, 7});
  CHECK(unit.matrices[2].shape() == Shape{5});
  CHECK(unit.count() == 61);
}
