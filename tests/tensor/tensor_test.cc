#include "tensor/tensor.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "base/error.h"

using namespace tokamak;

namespace {

struct Numbers {
  std::vector<float> values = std::vector<float>(24);
  Tensor tensor{values.data(), DType::kF32, Shape{2, 3, 4}};
  Numbers() { std::iota(values.begin(), values.end(), 0.0f); }
};

}  // namespace

TEST_CASE("a shape multiplies to its count, and rank 0 is one element") {
  CHECK(Shape{2, 3, 4}.count() == 24);
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{5, 0}.count() == 0);
  CHECK(Shape{2, 3}.text() == "(2, 3)");
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
}

TEST_CASE("views point into the same memory") {
  Numbers n;
  CHECK(n.tensor.rows(1, 2).as<float>()[0] == 12.0f);
  CHECK(n.tensor.rows(1, 2).shape() == Shape{1, 3, 4});
  CHECK(n.tensor.flat(5, 9).as<float>()[0] == 5.0f);
  CHECK(n.tensor.flat(5, 9).shape() == Shape{4});
  CHECK(n.tensor.reshape({6, 4}).rows(5, 6).as<float>()[3] == 23.0f);
}

TEST_CASE("views beyond the end, a wrong count and a wrong type are bugs that throw") {
  Numbers n;
  CHECK_THROWS_AS(n.tensor.rows(1, 3), Error);
  CHECK_THROWS_AS(n.tensor.flat(20, 25), Error);
  CHECK_THROWS_AS(n.tensor.reshape({5, 5}), Error);
  CHECK_THROWS_AS(n.tensor.as<bf16>(), Error);
}

TEST_CASE("an empty tensor is false") {
  CHECK_FALSE(Tensor());
  Numbers n;
  CHECK(static_cast<bool>(n.tensor));
}

TEST_CASE("bytes follow the dtype") {
  Numbers n;
  CHECK(n.tensor.bytes() == 96);
  CHECK(Tensor(n.values.data(), DType::kBF16, Shape{3}).bytes() == 6);
  CHECK(Tensor(n.values.data(), DType::kF64, Shape{3}).bytes() == 24);
}

TEST_CASE("a dtype that is no compute type never takes the arm of one") {
  CHECK(by_act_type(DType::kF32, 1, 2) == 1);
  CHECK(by_act_type(DType::kBF16, 1, 2) == 2);
  for (const DType other : {DType::kF64, DType::kI32, static_cast<DType>(77)}) {
    CHECK_THROWS_AS(by_act_type(other, 1, 2), Error);
    CHECK_THROWS_AS(with_act_type(other, [](auto) {}), Error);
  }
}
