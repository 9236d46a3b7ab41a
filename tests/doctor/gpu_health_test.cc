#include "doctor/gpu_health.h"

#include <catch2/catch.hpp>

#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

GpuHealths sound() {
  GpuHealth gpu{.name = "G", .bus = "0:1", .total_bytes = 80};
  gpu.uncorrected_errors = 0;
  gpu.temperature = 60;
  gpu.slowdown_temperature = 90;
  gpu.throttle = kPowerCap;  // what a loaded GPU says
  return {.missing = "", .driver = "550", .gpus = {gpu, gpu}};
}

}  // namespace

RANKS_CASE("sound GPUs pass; each fault is found on its host") {
  const RankHosts peers = a_host_each(world.size());
  const int last = world.size() - 1;
  const CheckResult good = check_gpus(world.comm(), peers, sound);
  CHECK(good.status == Status::kOk);
  CHECK(good.value == str(2 * world.size(), " GPU(s) on ", world.size(), " host(s), G, driver 550"));
  struct Case {
    Status status;
    const char* text;
    std::function<void(GpuHealth&)> plant;
  };
  for (const Case& c :
       {Case{Status::kFail, "uncorrected memory errors", [](GpuHealth& g) { g.uncorrected_errors = 2; }},
        Case{Status::kFail, "could not be remapped", [](GpuHealth& g) { g.remap_failed = true; }},
        Case{Status::kWarn, "waits to be remapped", [](GpuHealth& g) { g.remap_pending = true; }},
        Case{Status::kWarn, "power brake", [](GpuHealth& g) { g.throttle = kPowerBrake; }},
        Case{Status::kWarn, "too hot", [](GpuHealth& g) { g.throttle = kHardwareThermal; }},
        Case{Status::kWarn, "88 C", [](GpuHealth& g) { g.temperature = 88; }}}) {
    const CheckResult found = check_gpus(world.comm(), peers, [&] {
      GpuHealths all = sound();
      if (world.rank() == last) c.plant(all.gpus[1]);
      return all;
    });
    CHECK(found.status == c.status);
    CHECK(found.notes.size() == 1);
    CHECK(says(found, str(name_of(c.status), " n", last, ": n", last, ": GPU 1 (G, 0:1): ")));
    CHECK(says(found, c.text));
  }
}

RANKS_CASE("without the driver's library the check is skipped, with the reason") {
  const CheckResult result = check_gpus(world.comm(), a_host_each(world.size()),
                                        [] { return GpuHealths{.missing = "no libnvidia-ml.so.1 on this machine"}; });
  CHECK(result.status == Status::kSkipped);
  CHECK(result.value == "no libnvidia-ml.so.1 on this machine");
}

RANKS_CASE("a host that shows fewer GPUs than another is named") {
  if (world.size() < 2) return;
  const CheckResult result = check_gpus(world.comm(), a_host_each(world.size()), [&] {
    GpuHealths all = sound();
    if (world.rank() == 1) all.gpus.pop_back();
    return all;
  });
  CHECK(result.status == Status::kWarn);
  CHECK(says(result, "warn n1: n1 shows 1 GPU(s), another host 2"));
}
