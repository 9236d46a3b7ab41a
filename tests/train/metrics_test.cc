#include "train/metrics.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/device.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;

namespace {

std::vector<nlohmann::json> records(const std::string& path) {
  std::vector<nlohmann::json> all;
  for (const std::string& line : split(read_text(path, Kind::kData), '\n')) {
    if (!line.empty()) all.push_back(nlohmann::json::parse(line));
  }
  return all;
}

// Takes a byte whenever it is asked.
class CountingDevice : public CpuDevice {
 public:
  int64_t used_bytes() const override { return ++asked_; }

 private:
  mutable int64_t asked_ = 0;
};

}  // namespace

TEST_CASE("every interval one record with the promised keys, its loss the mean over the interval") {
  log::configure(0, 1, log::Level::kError);
  const TempDir dir;
  const std::string path = dir.file("metrics.jsonl");
  const CountingDevice device;
  {
    MetricsOptions options;
    options.log_interval = 2;
    Metrics metrics(options,
                    {.total_steps = 5,
                     .tokens_per_step = 100,
                     .flops = {.weights = 2e3, .per_attended = 20},
                     .sequence_length = 100,
                     .peak_flops = 1e6},
                    device, path);
    const double start = now_seconds();
    for (int64_t step = 1; step <= 5; ++step) {
      metrics.step({.step = step,
                    .lr = 0.1,
                    .loss = static_cast<double>(step),
                    .grad_norm = 2.0,
                    .applied = step != 3,
                    .attended = step == 3 ? 10.0 : 20.0,
                    .time = start + static_cast<double>(step)},
                   0.5 * static_cast<double>(step));
    }
    metrics.validation(5, 1.0, 0.1);
    metrics.event("checkpoint", 5, "here");
  }
  const auto all = records(path);
  REQUIRE(all.size() == 5);
  for (const char* key :
       {"step", "tokens", "loss/avg", "optim/lr", "optim/grad_norm", "throughput/tokens_per_sec", "throughput/mfu_full",
        "throughput/mfu_causal", "throughput/mfu_done", "time/data", "memory/used"}) {
    CHECK(all[0].contains(key));
  }
  CHECK(all[0]["loss/avg"] == 1.5);
  CHECK(all[1]["loss/avg"] == 4.0);  // step 3 was skipped
  CHECK(all[1]["optim/skipped_steps"] == 1);
  CHECK(all[1]["tokens"] == 400);
  CHECK(all[1]["throughput/tokens_per_sec"].get<double>() == Approx(100.0));
  CHECK(all[1]["throughput/mfu_full"].get<double>() == Approx(0.4));
  CHECK(all[1]["throughput/mfu_causal"].get<double>() == Approx(0.3));
  CHECK(all[1]["throughput/mfu_done"].get<double>() == Approx(0.23));  // 15 tokens, on average
  CHECK(all[1]["time/data"].get<double>() == Approx(1.0));
  CHECK(all[1]["memory/used"] == 2);  // asked for at the steps that are logged, and at no other
  CHECK(all[2]["step"] == 5);         // the last step is always told
  CHECK(all[3]["validation/perplexity"].get<double>() == Approx(2.718281828));
  CHECK(all[4]["event"] == "checkpoint");
}

TEST_CASE("a second start appends to what the first one wrote, each with its memory") {
  log::configure(0, 1, log::Level::kError);
  const TempDir dir;
  const CountingDevice device;
  for (int64_t done = 0; done < 2; ++done) {
    Metrics({}, {.first_step = done, .total_steps = 2, .planned_bytes = 30 + done, .committed_bytes = 40}, device,
            dir.file("m"))
        .start("");
  }
  const auto all = records(dir.file("m"));
  REQUIRE(all.size() == 2);
  CHECK((all[0]["event"] == "start" && all[0]["memory/planned"] == 30 && all[0]["memory/committed"] == 40));
  CHECK((all[1]["event"] == "resume" && all[1]["step"] == 1 && all[1]["memory/planned"] == 31));
}
