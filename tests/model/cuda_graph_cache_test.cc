// When a pass is recorded, replayed and timed, on a device that only takes notes.
#include "model/cuda_graph_cache.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "backend/cpu/device.h"
#include "base/error.h"
#include "base/log.h"

using namespace tokamak;

namespace {

// Records the calls: "p" a pass that runs, "r" one that is recorded, "g" a graph's launch, "[" and "]" the timestamps
// around.
class NotingDevice : public CpuDevice {
 public:
  bool can_record() const override { return true; }
  std::unique_ptr<Graph> record(Stream&, const std::function<void()>& work) override {
    recording = true;
    work();
    recording = false;
    if (fails) fail(*fails, "it cannot be recorded");
    return std::make_unique<NotingGraph>(*this);
  }
  std::unique_ptr<Timestamp> make_timestamp() override { return std::make_unique<NotingTimestamp>(*this); }

  std::string notes;
  bool recording = false;
  std::optional<Kind> fails;
  size_t timestamps = 0, over = 100;  // timestamps made so far; number of pairs that the device has reached
  double pass_seconds = 2, graph_seconds = 1;

 private:
  struct NotingGraph : Graph {
    explicit NotingGraph(NotingDevice& to) : device(to) {}
    void do_launch(Stream&) override { device.notes += "g"; }
    NotingDevice& device;
  };
  struct NotingTimestamp : Timestamp {
    explicit NotingTimestamp(NotingDevice& to) : device(to), number(to.timestamps++) {}
    void record(Stream&) override {
      taken = device.notes.ends_with("g") ? device.graph_seconds : device.pass_seconds;
      device.notes += number % 2 == 0 ? "[" : "]";
    }
    std::optional<double> seconds_since(const Timestamp&) const override {
      return number / 2 < device.over ? std::optional(taken) : std::nullopt;
    }
    NotingDevice& device;
    size_t number;
    double taken = 0;
  };
};

struct Run {
  explicit Run(CudaGraphs kind) : passes(device, kind) { log::configure(0, 1, log::Level::kError); }

  // Runs a pass of `key` `times` times. Returns the notes.
  std::string run(int times = 1, PassKey key = {.tokens = 64}) {
    device.notes.clear();
    for (int i = 0; i < times; ++i) {
      passes.run(*stream, key, [this] { device.notes += device.recording ? "r" : "p"; });
    }
    return device.notes;
  }

  NotingDevice device;
  std::unique_ptr<Stream> stream = device.make_stream();
  CudaGraphCache passes;
};

}  // namespace

TEST_CASE("a pass runs as it is written the first time, is recorded the second, and then replayed") {
  Run on(CudaGraphs::kOn);
  CHECK(on.passes.settled());
  CHECK(on.run(4) == "prggg");
  CHECK(on.run(2) == "gg");
}

TEST_CASE("every part of a key has a graph of its own") {
  Run on(CudaGraphs::kOn);
  const PassKey key{.inputs = &on, .sums = &on.device, .tokens = 64, .documents = 2};
  PassKey inputs = key, sums = key, tokens = key, documents = key, gradients = key;
  inputs.inputs = &on.stream;
  sums.sums = &on.stream;
  tokens.tokens = 32;
  documents.documents = 4;
  gradients.gradients = Write::kAccumulate;
  for (const PassKey& other : {key, inputs, sums, tokens, documents, gradients}) CHECK(on.run(3, other) == "prgg");
  for (const PassKey& other : {key, inputs, sums, tokens, documents, gradients}) CHECK(on.run(1, other) == "g");
}

TEST_CASE("graphs are few: passes of further keys run as they are written") {
  Run on(CudaGraphs::kOn);
  for (int64_t documents = 1; documents <= 64; ++documents) on.run(2, {.documents = documents});
  CHECK(on.run(3, {.documents = 65}) == "ppp");
  CHECK(on.run(3, {.documents = 64}) == "ggg");
}

TEST_CASE("auto times three passes of one key either way, and keeps the faster for all") {
  const std::string measured = "prg[p][g][p][g][p][g]";
  for (const bool graphs_win : {true, false}) {
    Run run(CudaGraphs::kAuto);
    run.device.graph_seconds = graphs_win ? 1.9 : 2.1;
    CHECK(run.run(8) == measured);
    CHECK_FALSE(run.passes.settled());
    CHECK(run.run(2) == (graphs_win ? "gg" : "pp"));
    CHECK(run.passes.settled());
    CHECK(run.run(3, {.tokens = 32}) == (graphs_win ? "prgg" : "ppp"));
  }
}

TEST_CASE("auto takes the best of the times, and none before all are over") {
  Run run(CudaGraphs::kAuto);
  run.device.pass_seconds = 9;  // as if the first run was disturbed
  run.run(2);
  run.device.pass_seconds = 0.5;
  run.run(6);
  run.device.over = 5;        // of 6 timings
  CHECK(run.run(2) == "gg");  // meanwhile
  CHECK(run.run(2, {.tokens = 32}) == "pp");
  CHECK_FALSE(run.passes.settled());
  run.device.over = 6;
  CHECK(run.run(2) == "pp");
  CHECK(run.passes.settled());
}

TEST_CASE("a pass that cannot be captured runs eagerly, or is an error if graphs are required") {
  Run automatic(CudaGraphs::kAuto);
  automatic.device.fails = Kind::kUnsupported;
  CHECK(automatic.run(7) == "prpppppp");  // the pass whose capture failed still runs, once
  CHECK(automatic.passes.settled());
  Run on(CudaGraphs::kOn);
  on.device.fails = Kind::kUnsupported;
  on.run(1);
  CHECK_THROWS_WITH(on.run(1), Catch::Contains("it cannot be recorded"));
  Run without_memory(CudaGraphs::kAuto);
  without_memory.device.fails = Kind::kDevice;
  CHECK(without_memory.run(7) == "prpppppp");
  CHECK(Run(CudaGraphs::kOff).run(3) == "ppp");
}

TEST_CASE("document counts are rounded up to few values, and documents of maximum length keep their count") {
  CHECK(room_for_documents(4, 4 * 32, 32) == 4);
  CHECK(room_for_documents(6, 6 * 32, 32) == 6);
  CHECK(room_for_documents(7, 6 * 32, 32) == 8);
  CHECK(room_for_documents(5, 4 * 32, 32) == 8);
  CHECK(room_for_documents(8, 4 * 32, 32) == 8);
  CHECK(room_for_documents(9, 4 * 32, 32) == 16);
  CHECK(room_for_documents(33, 48, 32) == 48);  // no more documents than tokens
  CHECK(room_for_documents(50, 48, 32) == 50);  // except for empty documents
}

TEST_CASE("a device that fails while it records ends the run, also where graphs are not required") {
  Run measuring(CudaGraphs::kAuto);
  measuring.device.fails = GENERATE(Kind::kDeviceFault, Kind::kBug);
  CHECK_THROWS_AS(measuring.run(100), Error);
}
