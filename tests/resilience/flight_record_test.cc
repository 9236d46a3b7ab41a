// The ring of the last calls, and the comparison of two ranks' rings.
#include "resilience/flight_record.h"

#include <catch2/catch.hpp>
#include <thread>

#include "backend/backend.h"
#include "base/clock.h"
#include "base/strings.h"
#include "support/ranks.h"  // last
#include "tensor/arena.h"

using namespace tokamak;

namespace {

struct Recorded {
  Recorded() : observation(*backend.device, record), stream(backend.device->make_stream({.name = "compute"})) {
    MemoryPlan plan;
    const auto slot = plan.add("x", DType::kF32, Shape{4, 3});
    arena = std::make_unique<Arena>(plan, *backend.device);
    x = (*arena)[slot];
  }
  void fill() { backend.ops->fill(*stream, {.x = x, .value = 0}); }

  RunProgress progress;
  FlightRecord record{progress};
  Backend backend = make_cpu_backend();
  Observation observation;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> arena;
  Tensor x;
};

}  // namespace

TEST_CASE("the last 100 calls are kept, with stream, name and shapes, and no graph is broken up for them") {
  Recorded run;
  CHECK_FALSE(run.backend.device->shows_operations());
  for (int i = 0; i < 150; ++i) run.fill();
  const std::vector<std::string> lines = split(run.record.text(), '\n');
  CHECK(lines.size() == FlightRecord::kCalls + 1);
  CHECK_THAT(lines.front(), Catch::Contains("#51 "));
  CHECK_THAT(lines[99], Catch::Contains("#150 ") && Catch::Contains("[compute] fill  -> x F32 (4, 3)"));
  const FlightRecord::Position position = run.record.position();
  CHECK(position.begun == 150);
  CHECK(position.collectives == 0);
  CHECK(position.inside.empty());
}

TEST_CASE("a host that waits for a collective beside it is inside of one, and has begun none that others have not") {
  Recorded run;
  const Stopwatch whole;
  run.progress.begin_step(1);
  run.record.host_waits(*run.stream);
  CHECK(run.record.position().inside == "wait for a collective");
  CHECK(run.record.position().collectives == 0);
  CHECK_THAT(run.record.text(), Catch::Contains("UNDER WAY  [compute] wait for a collective"));
  const Stopwatch waiting;
  while (waiting.seconds() < 0.05) std::this_thread::yield();
  run.record.host_waited(*run.stream);
  CHECK(run.record.position().inside.empty());
  run.progress.end_step();
  CHECK(run.progress.read().computing <= whole.seconds() - 0.05);  // the wait does not count as computing
}

TEST_CASE("a call that does not come back is the one that a rank is inside of") {
  Recorded run;
  run.fill();
  run.record.begin("barrier");
  CHECK(run.record.position().inside == "barrier");
  CHECK_THAT(run.record.text(), Catch::Contains("UNDER WAY  [host] barrier"));
  run.record.end("barrier");
  CHECK(run.record.position().inside.empty());
  CHECK(run.record.position().collectives == 1);
}

TEST_CASE("each call is progress when it begins and when it ends") {
  Recorded run;
  run.progress.enter(Phase::kStep);
  const auto longest = [&] { return run.progress.read().gaps.longest; };
  const double before = longest();
  const Stopwatch watch;
  while (watch.seconds() < before + 0.05) std::this_thread::yield();
  run.record.begin("max");
  CHECK(longest() >= before + 0.05);
  const double begun = longest();
  const Stopwatch inside;
  while (inside.seconds() < begun + 0.05) std::this_thread::yield();
  run.record.end("max");
  CHECK(longest() >= begun + 0.05);
}

RANKS_CASE("all ranks record the same host collectives, also of groups split from the first") {
  RunProgress progress;
  FlightRecord record(progress);
  world.comm().observe(&record);
  world.comm().max(1);
  const auto part = world.comm().split(0);
  part->barrier();
  std::string bytes = "x";
  part->broadcast(bytes, 0);
  part->gather_all(bytes);
  CHECK((record.position().collectives == 5 && record.position().inside.empty()));
  world.comm().observe(nullptr);
  world.comm().max(1);
  CHECK(record.position().collectives == 5);
}
