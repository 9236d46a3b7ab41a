#include "cuda/nccl/nodes.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("ranks are grouped by node where all nodes have as many, and more than one") {
  using Nodes = std::vector<std::vector<int>>;
  CHECK(nodes_of({"a", "a", "b", "b"}) == Nodes{{0, 1}, {2, 3}});
  CHECK(nodes_of({"b", "a", "b", "a"}) == Nodes{{0, 2}, {1, 3}});
  CHECK(nodes_of({"a", "a", "b"}) == Nodes{{0, 1, 2}});
  CHECK(nodes_of({"a", "b", "c"}) == Nodes{{0, 1, 2}});
  CHECK(nodes_of({"a", "a"}) == Nodes{{0, 1}});
}
