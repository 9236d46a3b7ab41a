// When a run allocates the memory of its snapshot, and what it does if there is not enough.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "monitor/run_status.h"
#include "train/memory_check.h"
#include "train/toy_training.h"

using namespace tokamak;
using Catch::Contains;

namespace {

constexpr std::chrono::minutes kHangs{10};  // a limit for what hangs, not a time that anything takes

// Calls `taken` for memory that another thread than the run's allocates, which is the snapshot's.
class WatchedDevice : public ToyDevice {
 public:
  explicit WatchedDevice(std::function<void(int64_t)> taken) : taken_(std::move(taken)) {}
  std::byte* allocate(int64_t bytes, MemoryKind kind) override {
    if (std::this_thread::get_id() != owner_) {
      TOKAMAK_CHECK(kind == MemoryKind::kPinned, "a snapshot is pinned");
      taken_(bytes);
    }
    return ToyDevice::allocate(bytes, kind);
  }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  const std::function<void(int64_t)> taken_;
};

std::function<Backend()> watched(const std::function<void(int64_t)>& taken) {
  return [=] { return Backend{std::make_unique<WatchedDevice>(taken), std::make_unique<CpuOps>()}; };
}

// A CPU that claims to have memory of its own, as a GPU does.
class ToyGpu : public WatchedDevice {
 public:
  using WatchedDevice::WatchedDevice;
  bool uses_host_memory() const override { return false; }
};

}  // namespace

TEST_CASE("training goes on while a thread takes the snapshot's memory, and the save waits for it") {
  const ToyPlace place;
  RunConfig config = place.config("late", 2);
  config.training.evals = {{}};
  config.training.evals_interval = 2;
  std::promise<void> released;
  const std::shared_future<void> release = released.get_future().share();
  std::promise<void> all_ask;
  std::atomic<int> asking{0}, calls{0};
  std::atomic<int64_t> bytes{0};
  ToyRunOptions options;
  options.backend = watched([&](int64_t count) {
    bytes += count;
    if (++asking == 2) all_ask.set_value();
    if (release.wait_for(kHangs) != std::future_status::ready) fail(Kind::kBug, "the steps wait for the snapshot");
  });
  options.evals = [&](Engine&, const std::function<void()>&) {
    // Both ranks have done four steps, and neither has its snapshot's memory.
    if (++calls == 4) {
      const bool asked = all_ask.get_future().wait_for(kHangs) == std::future_status::ready;
      released.set_value();
      if (!asked) fail(Kind::kBug, "four steps were done, and nothing takes the snapshot's memory");
    }
    return std::vector<NamedValue>();
  };
  CHECK(train(2, config, options) == RunEnd::kDone);
  CHECK(asking == 2);                                                  // a piece on each rank
  CHECK(bytes >= planned_bytes_of(place.config("one"), "snapshot/"));  // halves, which are padded
  train(2, place.config("plain", 2));
  CHECK((saved_state(place.checkpoint("late", 6)) == saved_state(place.checkpoint("plain", 6))));
}

TEST_CASE("no snapshot is taken before the first step, nor by a run that saves without one") {
  const ToyPlace place;
  std::atomic<int> taken{0};
  ToyRunOptions options;
  options.backend = watched([&](int64_t) { ++taken; });
  RunConfig config = place.config("run", 2);
  config.run.stop_after.seconds = 1e-9;  // the time is over before the first step
  CHECK(train(2, config, options) == RunEnd::kStopped);
  CHECK(taken == 0);
  config.run.stop_after = {};
  config.checkpoint.async = false;
  CHECK(train(2, config, options) == RunEnd::kDone);
  CHECK(taken == 0);
  // A start that loads and has nothing left to do takes no memory, either.
  config.checkpoint.async = true;
  CHECK(train(2, config, options) == RunEnd::kDone);
  CHECK(taken == 0);
}

TEST_CASE(
    "a run whose snapshot has no memory ends with the bytes and what would help, in a step or in its first save") {
  const ToyPlace place;
  for (const int ranks : {1, 3}) {
    for (const int64_t interval : {0, 1}) {
      RunConfig config = place.config(str("run", ranks, interval), ranks);
      if (interval > 0) {
        config.checkpoint.interval = TrainingLength::steps(interval);
      } else {
        config.training.max_steps = 5000;  // seconds, of which the thread needs none
      }
      ToyRunOptions options;
      options.backend =
          watched([](int64_t bytes) { fail(Kind::kDevice, str("refused ", human_bytes(bytes)), "a smaller batch"); });
      try {
        train(ranks, config, options);
        FAIL("the run ended well");
      } catch (const Error& error) {
        CHECK(error.kind() == Kind::kDevice);
        CHECK_THAT(error.what(), Contains("no host memory for the snapshot") && Contains("refused"));
        CHECK_THAT(error.hint(), Contains("checkpoint.async: false"));
        CHECK(error.hint().find("batch") == std::string::npos);
      }
      CHECK(steps_of(place, config.run.name).empty());
      CHECK(read_run_status(config.run.output_dir)->state == RunStatus::State::kFailed);
      // Another rank's thread may end first; rank 0 then reports that it has gone.
      if (ranks == 1) CHECK(read_run_status(config.run.output_dir)->code == 5);
      CHECK(read_run_status(config.run.output_dir)->step < 5000);  // not in the last save
    }
  }
}

TEST_CASE("on a device with memory of its own a run saves from a snapshot, async or not, and resumes without one") {
  const ToyPlace place;
  train(1, place.config("cpu"));
  std::atomic<int> taken{0};
  ToyRunOptions options;
  options.backend = [&] {
    return Backend{std::make_unique<ToyGpu>([&](int64_t) { ++taken; }), std::make_unique<CpuOps>()};
  };
  for (const bool async : {true, false}) {
    RunConfig config = place.config(async ? "beside" : "waited");
    config.checkpoint.async = async;
    options.stop_at_step = 2;
    taken = 0;
    CHECK(train(1, config, options) == RunEnd::kStopped);
    CHECK(taken == 1);
    options.stop_at_step = 0;
    CHECK(train(1, config, options) == RunEnd::kDone);
    CHECK(taken == 2);
    CHECK((saved_state(place.checkpoint(config.run.name, 6)) == saved_state(place.checkpoint("cpu", 6))));
  }
  CHECK_THAT(snapshot_hint(ToyGpu([](int64_t) {})), Contains("checkpoint.async: false would not"));
}
