// The simulator on steps written by hand, whose times are known: order, overlap, sharing and events.
#include "plan/simulator.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

using What = StepRecord::What;

// Builds a record call by call; each call has a cost of its own.
struct HandMade {
  StepRecord record{.streams = {"compute", "gather", "reduce"}, .calls = {}, .entries = {}};
  std::vector<CallCost> costs;

  void call(int stream, CallKind kind, CallCost cost) {
    record.entries.push_back({What::kCall, stream, std::ssize(record.calls)});
    record.calls.push_back({.kind = kind, .name = "call", .title = "call", .text = "call", .ranks = 2, .count = 1});
    costs.push_back(cost);
  }
  void operation(int stream, double seconds, double fixed = 0) {
    call(stream, CallKind::kOperation, {CallCost::Resource::kDevice, fixed, seconds});
  }
  void collective(int stream, double seconds, double fixed = 0) {
    call(stream, CallKind::kCollective, {CallCost::Resource::kLink, fixed, seconds});
  }
  void record_event(int stream, int64_t event) { record.entries.push_back({What::kRecord, stream, event}); }
  void wait(int stream, int64_t event) { record.entries.push_back({What::kWait, stream, event}); }
};

SimulatedStep simulate_one(const HandMade& step, const SimulationOptions& options = {}) {
  return simulate(step.record, step.costs, options);
}

}  // namespace

TEST_CASE("a stream's calls follow each other, and streams without events run at once") {
  HandMade step;
  step.operation(0, 2);
  step.collective(1, 5);
  step.operation(0, 1);
  const SimulatedStep result = simulate_one(step);
  CHECK(result.seconds == Approx(5));
  CHECK(result.busy[0] == Approx(3));
  CHECK(result.busy[1] == Approx(5));
  CHECK(result.exposed_communication == Approx(2));  // while no operation runs
  REQUIRE(result.spans.size() == 3);
  CHECK(result.spans[1].begin == Approx(2));  // the second operation
  CHECK(result.spans[1].end == Approx(3));
}

TEST_CASE("a gather one unit ahead is hidden but for the first") {
  HandMade step;
  constexpr int kUnits = 4;
  step.collective(1, 1);
  step.record_event(1, 0);
  for (int unit = 0; unit < kUnits; ++unit) {
    step.wait(0, unit);
    if (unit + 1 < kUnits) {
      step.collective(1, 1);
      step.record_event(1, unit + 1);
    }
    step.operation(0, 3);
  }
  const SimulatedStep result = simulate_one(step);
  CHECK(result.seconds == Approx(1 + 3 * kUnits));
  CHECK(result.exposed_communication == Approx(1));
}

TEST_CASE("an event means the host's last record before the wait, and none recorded is no wait") {
  HandMade step;
  step.wait(0, 7);  // event 7 is never recorded, so the wait returns
  step.operation(1, 1);
  step.record_event(1, 3);
  step.operation(1, 10);
  step.wait(2, 3);  // for the first record, not the later one
  step.operation(2, 1);
  step.operation(1, 1);
  step.record_event(1, 3);
  const SimulatedStep result = simulate_one(step);
  REQUIRE(result.spans.size() == 4);
  CHECK(result.spans[0].end == Approx(1));
  CHECK(result.spans[1].stream == 2);
  CHECK(result.spans[1].begin == Approx(1));
  CHECK(result.spans[1].end == Approx(3));  // two operations share the device
  CHECK(result.seconds == Approx(13));
}

TEST_CASE("an event recorded again means the later point to those that wait from then on") {
  HandMade step;
  for (const double seconds : {1.0, 4.0}) {
    step.collective(1, seconds);
    step.record_event(1, 0);
  }
  step.wait(0, 0);
  step.operation(0, 1);
  CHECK(simulate_one(step).seconds == Approx(6));
}

TEST_CASE("collectives share the link, but not the time of their hops") {
  HandMade step;
  step.collective(1, 2);
  step.collective(2, 2);
  CHECK(simulate_one(step).seconds == Approx(4));
  HandMade hops;
  hops.collective(1, 0, 2);
  hops.collective(2, 0, 2);
  CHECK(simulate_one(hops).seconds == Approx(2));
  HandMade uneven;
  uneven.collective(1, 1);
  uneven.collective(2, 3);
  const SimulatedStep result = simulate_one(uneven);
  CHECK(result.spans[0].end == Approx(2));  // half the rate while both run
  CHECK(result.seconds == Approx(4));
  CHECK(result.exposed_communication == Approx(4));
}

TEST_CASE("a collective takes its share of the device from the operations beside it") {
  HandMade step;
  step.collective(1, 5);
  step.operation(0, 8);
  // The operation takes 5 s at 80 % of its rate, then 4 s alone.
  const SimulatedStep result = simulate_one(step, {.contention = 0.2});
  CHECK(result.seconds == Approx(9));
  CHECK(result.exposed_communication == Approx(0).margin(1e-12));
}

TEST_CASE("a collective keeps its share of its rate beside operations") {
  HandMade step;
  step.collective(1, 5);
  step.operation(0, 4);
  // The gather takes 4 s at half its rate, then 3 s alone.
  const SimulatedStep result = simulate_one(step, {.beside = 0.5});
  CHECK(result.seconds == Approx(7));
  CHECK(result.exposed_communication == Approx(3));
}

TEST_CASE("a step among others finds what the one before it has begun, and pays for what it leaves behind") {
  // The step waits for the last gather of the step before. Its own last gather runs beside the next step's operation.
  HandMade step;
  step.wait(0, 0);
  step.operation(0, 3);
  step.record_event(0, 1);
  step.wait(1, 1);
  step.collective(1, 5);
  step.record_event(1, 0);
  step.operation(0, 1);
  const SimulatedStep alone = simulate_one(step), among_others = simulate_one(step, {.steps = 3});
  CHECK(alone.seconds == Approx(8));             // until the gather is done, for which it did not wait
  CHECK(among_others.seconds == Approx(3 + 5));  // the gather, beside 1 s of the step before it
  CHECK(among_others.exposed_communication == Approx(4));
  CHECK(among_others.busy[0] == Approx(4));
  CHECK(among_others.busy[1] == Approx(5));
  REQUIRE(!among_others.spans.empty());
  for (const SimulatedStep::Span& span : among_others.spans) {
    CHECK(span.begin >= 0);
    CHECK(span.end <= among_others.seconds * (1 + 1e-12));
  }
}

TEST_CASE("the trace has a row of each stream and a span of each call") {
  HandMade step;
  step.operation(0, 2);
  step.collective(1, 5);
  const std::string trace = simulate_one(step).trace(step.record);
  CHECK(trace.find("stream gather, simulated") != std::string::npos);
  CHECK(trace.find("\"collective\"") != std::string::npos);
}
