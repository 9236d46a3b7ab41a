#include "doctor/checks.h"

#include <catch2/catch.hpp>

#include "base/clock.h"
#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

constexpr BurnInOptions kShort{.seconds = 0.05, .dtype = DType::kF32, .most = 48};

void flip_bit(Tensor c) {
  auto* const bytes = static_cast<unsigned char*>(c.data());
  bytes[5] ^= 1;
}

CheckResult judged(const std::vector<double>& rates, double share_of_cores = 1.0) {
  CheckResult result{.name = "burn-in"};
  for (const double rate : rates) {
    Facts facts;
    facts.set("device", std::string("d"));
    facts.set("bits", std::string("1"));
    facts.set("flops_per_second", rate);
    facts.set("share_of_cores", share_of_cores);
    result.ranks.push_back(facts);
  }
  judge_burn_in(result, a_host_each(static_cast<int>(rates.size())));
  return result;
}

}  // namespace

RANKS_CASE("sound devices compute the same bits in every round") {
  Backend backend = make_cpu_backend();
  const CheckResult result = check_burn_in(world.comm(), a_host_each(world.size()), backend, kShort);
  CHECK(result.ranks.front().number("n") == 48);
  CHECK(result.ranks.front().number("rounds") >= 1);
  CHECK(result.ranks.front().number("flops_per_second") > 0);
  CHECK(!says(result, "bits"));
}

RANKS_CASE("a rank whose device computes other bits is found among its equals, and its host named") {
  Backend backend = make_cpu_backend();
  PlantedGemm fault([&](int64_t, Tensor c) {
    if (world.rank() == 1) flip_bit(c);
  });
  const Observation planted(*backend.device, fault);
  const CheckResult result = check_burn_in(world.comm(), a_host_each(world.size()), backend, kShort);
  if (world.size() == 1) return;
  CHECK(result.status == Status::kFail);
  CHECK(result.kind == Kind::kDevice);
  CHECK(says(result, "fail n1: rank 1 (n1) computes other bits"));
  CHECK(says(result, "fail n0: rank 0 (n0) computes other bits") == (world.size() == 2));  // one of two: which?
  CHECK(!says(result, "fail n2: rank 2 (n2) computes other bits"));  // slow it may be, on cores that are busy
}

RANKS_CASE("a device that computes other bits from time to time is found alone") {
  Backend backend = make_cpu_backend();
  int64_t result_of_round = 0;
  PlantedGemm fault([&](int64_t, Tensor c) {
    if (world.rank() == 0 && ++result_of_round % 2 == 0) flip_bit(c);
  });
  const Observation planted(*backend.device, fault);
  // One GEMM a round, as each is long.
  PlantedGemm slow([](int64_t, Tensor) {
    const Stopwatch watch;
    while (watch.seconds() < 0.11) {
    }
  });
  const Observation slowed(*backend.device, slow);
  const CheckResult result = check_burn_in(world.comm(), a_host_each(world.size()), backend,
                                           {.seconds = 0.4, .dtype = DType::kF32, .most = 48});
  CHECK(result.status == Status::kFail);
  CHECK(says(result, "fail n0: rank 0 (n0): the same GEMM gave other bits in "));
}

RANKS_CASE("a slow rank is found") {
  if (world.size() < 2) return;
  Backend backend = make_cpu_backend();
  PlantedGemm fault([&](int64_t, Tensor) {
    const Stopwatch watch;
    while (world.rank() == 1 && watch.seconds() < 0.02) {
    }
  });
  const Observation planted(*backend.device, fault);
  const CheckResult result = check_burn_in(world.comm(), a_host_each(world.size()), backend, kShort);
  CHECK(result.status != Status::kOk);  // a warning only, where other processes use the cores
  CHECK(says(result, "rank 1 (n1) computes at "));
}

TEST_CASE("below 70 % of the others' median rate a rank fails, below 90 % it warns, on shared cores it only warns") {
  CHECK(judged({100, 100, 91}).status == Status::kOk);
  const CheckResult slower = judged({100, 100, 89});
  CHECK(slower.status == Status::kWarn);
  CHECK(says(slower, "warn n2: rank 2 (n2) computes at 89 %"));
  const CheckResult slow = judged({100, 100, 69});
  CHECK(slow.status == Status::kFail);
  CHECK(says(slow, "fail n2: rank 2 (n2) computes at 69 %"));
  CHECK(slow.notes.size() == 1);
  const CheckResult shared = judged({100, 100, 20}, 0.5);
  CHECK(shared.status == Status::kWarn);
  CHECK(says(shared, "other processes use its cores"));
}
