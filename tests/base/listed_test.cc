#include "base/listed.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("one problem ends its sentence, several have a line each, and the rest are counted") {
  CHECK("bad:" + listed({"a"}, 2) == "bad: a");
  CHECK("bad:" + listed({"a", "b"}, 2) == "bad:\n  a\n  b");
  CHECK("bad:" + listed({"a", "b", "c", "d"}, 2) == "bad:\n  a\n  b\n  and 2 more");
}
