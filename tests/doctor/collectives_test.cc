#include "doctor/checks.h"

#include <catch2/catch.hpp>

#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

CheckResult check(World& world, const Planted& planted, DType reduce = DType::kF32) {
  Backend backend = make_cpu_backend();
  PlantedComm data(world.comm().split(0), planted);
  return check_collectives(world.comm(), data, a_host_each(world.size()), *backend.device,
                           {.reduce = reduce, .most_bytes = 1 << 16, .seconds = 0.1});
}

}  // namespace

RANKS_CASE("sound collectives are right in f32 and bf16, and have a bandwidth") {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const CheckResult result = check(world, {}, dtype);
    CHECK(result.status == Status::kOk);
    CHECK(result.value.find("right; ") == 0);
    CHECK(result.ranks.front().has("all_gather_bytes_per_second_of_65536"));
  }
}

RANKS_CASE("a wrong result of each collective is found, with the rank that has it") {
  const int last = world.size() - 1;
  const auto here = [&](const std::function<void(Tensor)>& fault) {
    return world.rank() == last ? fault : std::function<void(Tensor)>();
  };
  const auto blames_last = [&](const CheckResult& result, const std::string& name) {
    return result.status == Status::kFail && result.kind == Kind::kComm && result.notes.size() == 1 &&
           says(result, str(name, " gives a wrong result on rank ", last, " (n", last, ")"));
  };
  const CheckResult gather = check(world, {.in_gather = here([](Tensor full) { full.as<float>()[3] += 1; })});
  CHECK(blames_last(gather, "all_gather"));
  CHECK(says(gather, "element 3, of rank 0, is "));
  CHECK(blames_last(check(world, {.in_reduce = here([](Tensor slice) { slice.as<float>()[7] += 1; })}),
                    "reduce_scatter"));
  CHECK(blames_last(check(world, {.in_sum = here([](Tensor x) {
                                    if (x.dtype() == DType::kF64) x.as<double>()[0] *= 2;
                                    if (x.dtype() == DType::kF64) x.as<double>()[7] += 1;
                                  })}),
                    "all_reduce"));
}
