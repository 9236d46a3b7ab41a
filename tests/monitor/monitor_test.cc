#include "monitor/monitor.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace tokamak;

namespace {

class Collector : public Sink {
 public:
  explicit Collector(std::vector<MetricRecord>& records) : records_(records) {}
  void write(const MetricRecord& record) override { records_.push_back(record); }

 private:
  std::vector<MetricRecord>& records_;
};

Sinks collect(std::vector<MetricRecord>& records) {
  Sinks sinks;
  sinks.push_back(std::make_unique<Collector>(records));
  return sinks;
}

RunScale scale_of(int64_t total_steps) {
  return {.total_steps = total_steps,
          .tokens_after = [](int64_t step) { return 100 * step; },
          .length = [](int64_t) { return 100; },
          .token_flops = {.done = [](double attended) { return 2e3 + 20 * attended; },
                          .full = [](double length) { return 2e3 + 20 * length; },
                          .causal = [](double length) { return 2e3 + 10 * length; }},
          .peak_flops = 1e6};
}

std::vector<std::string> names_of(const MetricRecord& record) {
  std::vector<std::string> names;
  for (const NamedValue& one : record.values) names.push_back(one.name);
  return names;
}

}  // namespace

TEST_CASE("the values of an interval are of its steps, in the promised order") {
  Interval interval(scale_of(6), 1000);
  const auto step = [](int64_t number, double loss, double attended, bool applied = true) {
    return StepOutcome{.step = number,
                       .lr = 0.1,
                       .loss = loss,
                       .z_loss = 0.5,
                       .grad_norm = 2,
                       .applied = applied,
                       .attended = attended};
  };
  interval.add(step(1, 7, 50));
  interval.take(step(1, 7, 50), {.time = 1008, .data_wait = 0.25, .memory_used = 1});
  interval.add(step(2, 1, 20));
  interval.add(step(3, 9, 10, false));
  interval.add(step(4, 2, 30));
  const MetricRecord record = interval.take(step(4, 2, 30), {.time = 1010, .data_wait = 1, .memory_used = 77});

  CHECK(names_of(record) == std::vector<std::string>{"tokens", "loss/avg", "loss/last", "loss/z", "optim/lr",
                                                     "optim/grad_norm", "optim/skipped_steps",
                                                     "throughput/tokens_per_sec", "throughput/mfu_full",
                                                     "throughput/mfu_causal", "throughput/mfu_done", "time/interval",
                                                     "time/data", "memory/used"});
  CHECK(record.step == 4);
  CHECK(!record.event);
  CHECK(record.at("tokens") == 400);
  CHECK(record.at("loss/avg") == 1.5);  // step 3 was not applied
  CHECK(record.at("loss/last") == 2);
  CHECK(record.at("loss/z") == 0.5);
  CHECK(record.at("optim/lr") == 0.1);
  CHECK(record.at("optim/grad_norm") == 2);
  CHECK(record.at("optim/skipped_steps") == 1);
  CHECK(record.at("throughput/tokens_per_sec") == 150);
  CHECK(record.at("throughput/mfu_full") == Approx(150 * 4e3 / 1e6));
  CHECK(record.at("throughput/mfu_causal") == Approx(150 * 3e3 / 1e6));
  CHECK(record.at("throughput/mfu_done") == Approx(150 * 2.4e3 / 1e6));  // 20 tokens, on average
  CHECK(record.at("time/interval") == 2);
  CHECK(record.at("time/data") == 0.75);
  CHECK(record.at("memory/used") == 77);
  CHECK(record.eta == 10.0 / 4 * 2);  // as fast as since the start
}

TEST_CASE("the tokens, rate, MFU and ETA of an interval are right where batch and length change inside of it") {
  RunScale scale = scale_of(10);
  scale.tokens_after = [](int64_t step) { return step <= 4 ? 100 * step : 400 + 300 * (step - 4); };
  scale.length = [](int64_t step) { return step <= 4 ? 100 : 150; };
  Interval interval(scale, 0);
  for (int64_t step = 1; step <= 6; ++step) interval.add({.step = step});
  const MetricRecord record = interval.take({.step = 6}, {.time = 10});
  CHECK(record.at("tokens") == 1000);
  CHECK(record.at("throughput/tokens_per_sec") == 100);
  CHECK(record.at("throughput/mfu_full") == Approx(100 * (2e3 + 20 * 700 / 6.0) / 1e6));
  CHECK(record.eta == 12);  // 1200 tokens are left, of 100 a second
}

TEST_CASE("without a peak there is no MFU") {
  RunScale scale = scale_of(6);
  scale.peak_flops = 0;
  Interval interval(scale, 0);
  const StepOutcome step{.step = 1, .loss = 3, .applied = true, .attended = 5};
  interval.add(step);
  for (const std::string& name : names_of(interval.take(step, {.time = 4}))) {
    CHECK_THAT(name, !Catch::Contains("mfu"));
  }
}

TEST_CASE("an interval without an applied step has no mean loss, and a resumed run's ETA is by its own steps") {
  RunScale scale = scale_of(20);
  scale.first_step = 10;
  Interval interval(scale, 0);
  const StepOutcome skipped{.step = 12, .loss = 3, .applied = false};
  interval.add(skipped);
  const MetricRecord record = interval.take(skipped, {.time = 4});
  CHECK(std::isnan(record.at("loss/avg")));
  CHECK(record.eta == 4.0 / 2 * 8);
}

TEST_CASE("a record every interval and at the last step, and the device is asked for its memory at no other") {
  std::vector<MetricRecord> records;
  int64_t asked = 0;
  Recorder recorder(collect(records));
  Monitor monitor(
      {.scale = scale_of(5), .log_interval = 2, .memory_used = [&] { return ++asked; }, .recorder = recorder});
  for (int64_t step = 1; step <= 5; ++step) monitor.step({.step = step}, 0);
  REQUIRE(records.size() == 3);
  CHECK(records[0].step == 2);
  CHECK(records[1].step == 4);
  CHECK(records[2].step == 5);
  CHECK(records[2].at("memory/used") == 3);
}

TEST_CASE("without a sink nothing is asked for") {
  int64_t asked = 0;
  Recorder recorder({});
  Monitor monitor(
      {.scale = scale_of(5), .log_interval = 1, .memory_used = [&] { return ++asked; }, .recorder = recorder});
  monitor.step({.step = 1}, 0);
  CHECK(asked == 0);
}

TEST_CASE("validations, evaluations, samples and events are records with their step and values") {
  std::vector<MetricRecord> records;
  Recorder recorder(collect(records));
  Monitor monitor({.scale = scale_of(5), .recorder = recorder});
  const int64_t before = unix_milliseconds();
  monitor.validation(3, 1.0, 1.5, {{"ema", 0.875}}, 0.25);
  monitor.evals(4, {{"arc/acc", 0.5}, {"piqa/acc", 0.75}}, 0.5);
  monitor.event("start", 0, "2 rank(s)", {count_value("memory/planned", 30)});
  monitor.samples(4, {{"It was", " so"}}, 0.125);
  monitor.tensors(5, {{"q", 8}}, 0.125);
  REQUIRE(records.size() == 5);
  for (const MetricRecord& record : records) CHECK((record.time >= before && record.time <= unix_milliseconds()));
  CHECK(records[0].step == 3);
  CHECK(names_of(records[0]) == std::vector<std::string>{"tokens", "validation/loss", "validation/perplexity",
                                                         "validation/bits_per_byte", "validation/loss_ema",
                                                         "time/validation"});
  CHECK(records[0].at("tokens") == 300);
  CHECK(records[0].at("validation/perplexity") == Approx(2.718281828));
  CHECK(records[0].at("validation/loss_ema") == 0.875);
  CHECK(records[0].at("time/validation") == 0.25);
  CHECK(names_of(records[1]) == std::vector<std::string>{"tokens", "evals/arc/acc", "evals/piqa/acc", "time/evals"});
  CHECK(records[1].at("evals/piqa/acc") == 0.75);
  REQUIRE(records[2].event);
  CHECK((records[2].event->name == "start" && records[2].event->detail == "2 rank(s)"));
  CHECK(names_of(records[2]) == std::vector<std::string>{"memory/planned"});
  CHECK((records[3].step == 4 && names_of(records[3]) == std::vector<std::string>{"tokens", "time/samples"}));
  CHECK((records[3].at("time/samples") == 0.125 && records[3].samples == std::vector<SampleText>{{"It was", " so"}}));
  CHECK(names_of(records[4]) == std::vector<std::string>{"tokens", "time/tensor_statistics"});
  CHECK((records[4].step == 5 && records[4].tensors.size() == 1 && records[4].at("time/tensor_statistics") == 0.125));
}

TEST_CASE("no training time passes off the clock") {
  TrainingClock clock;
  const double now = now_seconds();
  CHECK(clock.at(now) == now);
  double off = 0;
  {
    const OffTheClock scope(clock);
    while (scope.seconds() < 1e-3) {
    }
    off = scope.seconds();
  }
  CHECK(clock.at(now) <= now - off);
  const double later = now_seconds();
  CHECK(clock.at(later) >= now);  // no more than the scope is left out
  { const OffTheClock again(clock); }
  CHECK(clock.at(now) <= now - off);
}

TEST_CASE("the phases of a start are in their order and add up to the whole, from the birth of the process") {
  StartupClock clock(5);
  CHECK(clock.begin_time() <= unix_milliseconds() - 5000);
  clock.done("world");
  clock.done("load");
  const std::vector<NamedValue> values = clock.values();
  REQUIRE(values.size() == 3);
  CHECK((values[0].name == "startup/world" && values[1].name == "startup/load" && values[2].name == "startup/seconds"));
  CHECK(values[0].value >= 5);
  CHECK(values[2].value == Approx(values[0].value + values[1].value).epsilon(1e-12));
}
