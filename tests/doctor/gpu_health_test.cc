#include "doctor/checks.h"

#include <catch2/catch.hpp>

#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

Facts gpus(int count) {
  Facts facts;
  facts.set("driver", "550");
  facts.set("gpus", count);
  for (int i = 0; i < count; ++i) {
    const auto set = [&](const char* name, const auto& value) { facts.set(str("gpu", i, ".", name), value); };
    set("name", "G");
    set("bus", "0:1");
    set("uncorrected_errors", 0);
    set("temperature", 60);
    set("slowdown_temperature", 90);
    set("throttle_reasons", kPowerCap);  // as a loaded GPU reports
  }
  return facts;
}

}  // namespace

RANKS_CASE("sound GPUs pass; each fault is found on its host") {
  const RankHosts peers = a_host_each(world.size());
  const int last = world.size() - 1;
  const CheckResult good = check_gpus(world.comm(), peers, [] { return gpus(2); });
  CHECK(good.status == Status::kOk);
  CHECK(good.value == str(2 * world.size(), " GPU(s) on ", world.size(), " host(s), G, driver 550"));
  struct Case {
    Status status;
    const char* text;
    const char* fact;
    int64_t value;
  };
  for (const Case& c : {Case{Status::kFail, "2 uncorrected memory errors", "uncorrected_errors", 2},
                        Case{Status::kFail, "could not be remapped", "remap_failed", 1},
                        Case{Status::kWarn, "waits to be remapped", "remap_pending", 1},
                        Case{Status::kWarn, "power brake", "throttle_reasons", kPowerBrake},
                        Case{Status::kWarn, "too hot", "throttle_reasons", kHardwareThermal},
                        Case{Status::kWarn, "88 C, and at 90 C", "temperature", 88}}) {
    const CheckResult found = check_gpus(world.comm(), peers, [&] {
      Facts all = gpus(2);
      if (world.rank() == last) all.set(str("gpu1.", c.fact), c.value);
      return all;
    });
    CHECK(found.status == c.status);
    CHECK(found.notes.size() == 1);
    CHECK(says(found, str(name_of(c.status), " n", last, ": n", last, ": GPU 1 (G, 0:1): ")));
    CHECK(says(found, c.text));
  }
}

RANKS_CASE("without the driver's library the check is skipped, with the reason") {
  Facts none;
  none.set("missing", "no libnvidia-ml.so.1 on this machine");
  const CheckResult result = check_gpus(world.comm(), a_host_each(world.size()), [&] { return none; });
  CHECK(result.status == Status::kSkipped);
  CHECK(result.value == "no libnvidia-ml.so.1 on this machine");
}

RANKS_CASE("a host that shows fewer GPUs than another is named") {
  if (world.size() < 2) return;
  const CheckResult result =
      check_gpus(world.comm(), a_host_each(world.size()), [&] { return gpus(world.rank() == 1 ? 1 : 2); });
  CHECK(result.status == Status::kWarn);
  CHECK(says(result, "warn n1: n1 shows 1 GPU(s), another host 2"));
}
