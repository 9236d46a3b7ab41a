// The check behind every operation, on tensors larger than what it copies to the host at once.
#include "backend/finite_check.h"

#include "support.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

std::optional<NonFinite> found_in(const HostTensor& x) {
  TestBackend cpu;
  Backend& backend = under_test().backend;
  HostTensor sums(DType::kF64, {kStepSums}, {0, 0, 0, 0});
  FiniteCheck check(backend, 600);
  const Observation observed(*backend.device, check);
  cpu.ops().sum_squares(*cpu.stream, {x, sums});
  return check.found();
}

}  // namespace

TEST_CASE("the first value that is not finite is found wherever it is, with the number of all of them") {
  for (const int64_t index : {0, 65535, 65536, 199'999}) {
    Values values(200'000, 1);
    values[static_cast<size_t>(index)] = std::numeric_limits<double>::infinity();
    values.back() = std::numeric_limits<double>::quiet_NaN();
    const HostTensor x(DType::kF32, {200'000}, values);
    const std::optional<NonFinite> found = found_in(x);
    REQUIRE(found);
    CHECK(found->is_input);
    CHECK(found->operand == "x");
    CHECK(found->index == index);
    CHECK(found->count == (index == 199'999 ? 1 : 2));
    CHECK(std::isinf(found->value) == (index != 199'999));
  }
}

TEST_CASE("a tensor of finite values, also of zeros and of the greatest ones, raises no alarm") {
  for (const double value : {0.0, -0.0, 3.4e38, -1e-45})
    CHECK_FALSE(found_in(HostTensor(DType::kF32, {1000}, Values(1000, value))));
}
