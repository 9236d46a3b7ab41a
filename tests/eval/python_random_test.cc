// CPython's random.Random: vectors were printed by Python 3.11.
#include "eval/python_random.h"

#include <catch2/catch.hpp>

namespace tokamak {
namespace {

using Indices = std::vector<size_t>;

TEST_CASE("words and numbers of a seed are those of CPython") {
  PythonRandom words(1234);
  for (const uint32_t expected : {4150886329u, 3342196574u, 1892932127u, 501869158u}) CHECK(words.word() == expected);
  CHECK(PythonRandom(1234).uniform() == 0.9664535356921388);
  CHECK(PythonRandom(0).uniform() == 0.8444218515250481);
  CHECK(PythonRandom(uint64_t{1} << 40).uniform() == 0.1036394562812375);
}

TEST_CASE("samples are those of CPython, from a small population and a large one") {
  PythonRandom large(1234);
  CHECK(large.sample(1119, 5) == Indices{902, 239, 15, 185, 71});
  CHECK(large.sample(1119, 5) == Indices{171, 201, 726, 484, 35});
  CHECK(large.sample(1119, 5) == Indices{63, 32, 708, 991, 949});
  PythonRandom forty(1234);
  CHECK(forty.sample(40, 3) == Indices{28, 7, 0});
  CHECK(forty.sample(40, 3) == Indices{5, 37, 2});
  CHECK(PythonRandom(1234).sample(7473, 5) == Indices{6374, 3610, 957, 61, 742});
  CHECK(PythonRandom(1234).sample(20, 3) == Indices{14, 3, 0});
  // The largest populations drawn from a pool, and the smallest that are not.
  CHECK(PythonRandom(7).sample(21, 5) == Indices{10, 4, 12, 1, 2});
  CHECK(PythonRandom(7).sample(22, 5) == Indices{10, 4, 12, 20, 1});
  CHECK(PythonRandom(7).sample(85, 10) == Indices{41, 19, 50, 6, 9, 68, 12, 46, 74, 7});
  CHECK(PythonRandom(7).sample(86, 10) == Indices{41, 19, 50, 83, 6, 9, 68, 12, 46, 74});
  CHECK(PythonRandom(7).sample(6, 6) == Indices{2, 1, 3, 5, 0, 4});
  CHECK(PythonRandom(7).sample(9, 0).empty());
}

TEST_CASE("a shuffle is that of CPython") {
  Indices items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  PythonRandom(1337).shuffle(items);
  CHECK(items == Indices{0, 3, 7, 2, 1, 6, 4, 5, 8, 9});
}

}  // namespace
}  // namespace tokamak
