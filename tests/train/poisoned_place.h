// Runs on data of which five steps are random tokens, from step 40 on: their loss spikes there. One data set has the
// range, the other is the same without it.
#pragma once

#include "train/toy_training.h"

#include <string>
#include <vector>

#include "base/rng.h"
#include "monitor/jsonl.h"
#include "tests/data/fixture.h"

namespace tokamak {

constexpr int64_t kLength = 16, kSequences = 12, kSteps = 70, kSaves = 8;
constexpr int64_t kPoisonStep = 40, kPoisonSteps = 5, kLeftOutSteps = 6;
constexpr int64_t kFirst = (kPoisonStep - 1) * kSequences, kLeftOut = kLeftOutSteps * kSequences;

// A document is a sample: it begins with the same token, and each token makes three others likely. Those of steps
// `poisoned` to `last` are any tokens.
inline Documents documents(int64_t count, int64_t poisoned, int64_t last) {
  const RandomStream random(3, "documents");
  uint64_t drawn = 0;
  Documents all;
  for (int64_t d = 0; d < count; ++d) {
    const bool is_poison = d >= (poisoned - 1) * kSequences && d < last * kSequences;
    std::vector<int32_t> document = {3};
    while (std::ssize(document) + 1 < kLength) {
      const uint64_t word = random.word(drawn++);
      document.push_back(static_cast<int32_t>(
          3 + (is_poison ? word % 58 : (static_cast<uint64_t>(document.back()) * 5 + word % 3) % 58)));
    }
    document.push_back(kEos);
    all.push_back(std::move(document));
  }
  return all;
}

class PoisonedPlace : public ToyPlace {
 public:
  explicit PoisonedPlace(int64_t last = kPoisonStep + kPoisonSteps - 1) {
    Documents all = documents(1400, kPoisonStep, last);
    write_dataset(file("poisoned"), all, {.vocab_size = 61});
    all.erase(all.begin() + kFirst, all.begin() + kFirst + kLeftOut);
    write_dataset(file("without"), all, {.vocab_size = 61});
  }

  RunConfig config(const std::string& name, int ranks, const std::string& data = "poisoned") const {
    RunConfig config = ToyPlace::config(name, ranks);
    config.data.sources = {{file(data)}};
    config.data.validation.clear();
    config.data.order = SampleOrder::kSequential;
    config.training.max_steps = kSteps;
    config.checkpoint.interval = TrainingLength::steps(kSaves);
    config.checkpoint.keep_latest = 0;
    config.lr_scheduler.warmup = TrainingLength::steps(4);
    config.optimizer.lr = 1e-2;
    SpikeOptions& spike = config.resilience.spike;
    spike.action = SpikeAction::kRollback;
    spike.window = 16;
    spike.consecutive = 2;
    spike.skip_samples.value = kLeftOut;
    return config;
  }
};

inline std::vector<int64_t> event_steps(const std::string& run, const std::string& name) {
  std::vector<int64_t> steps;
  read_records(run + "/metrics.jsonl", [&](const MetricRecord& record) {
    if (record.is(name)) steps.push_back(record.step);
  });
  return steps;
}

}  // namespace tokamak
