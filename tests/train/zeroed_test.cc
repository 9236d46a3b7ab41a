// resilience.non_finite: zero, against runs in which these values of the gradient are zeros.
#include <catch2/catch.hpp>

#include "monitor/jsonl.h"
#include "train/plant.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// All that tensors.jsonl says of each tensor, by "step name kind".
std::map<std::string, std::vector<double>> statistics_of(const std::string& run) {
  std::map<std::string, std::vector<double>> all;
  read_records(
      run + "/tensors.jsonl",
      [&](const MetricRecord& record) {
        for (const TensorRecord& tensor : record.tensors) {
          for (const TensorRecord::Part& part : tensor.parts) {
            std::vector<double>& values = all[str(record.step, " ", tensor.name, " ", part.kind)];
            values.insert(values.end(), {part.values.rms, part.values.min, part.values.max});
            values.insert(values.end(), part.values.counts.begin(), part.values.counts.end());
          }
        }
      },
      ReadTensors::kYes);
  return all;
}

}  // namespace

TEST_CASE("resilience.non_finite: zero makes the update with zeros for the gradient's values that are not finite") {
  const ToyPlace place;
  std::vector<ToyState> ends;
  for (const float value : {kInfinity, 0.0f}) {
    const std::string name = value == 0 ? "zero" : "infinite";
    RunConfig config = place.config(name);
    config.resilience.non_finite = NonFiniteAction::kZero;
    config.metrics.tensor_statistics = config.metrics.activation_statistics.interval = 1;
    std::optional<Plant> plant;
    train(1, config, after_step_3(config, 0, [&](Engine& engine) {
            Device& device = *engine.backend().device;
            plant.emplace(device, Plant::Place{"gemm down dw", {"backward", 1}, "c", value, 7});
            device.observe(*plant);
          }));
    ends.push_back(saved_state(place.checkpoint(name, 6)));
  }
  CHECK((ends[0].tensors == ends[1].tensors));
  // The statistics are those of the update that was made, and of passes with the weights that it made.
  const auto found = statistics_of(place.run("infinite")), wanted = statistics_of(place.run("zero"));
  CHECK(wanted.size() > 6 * 20);
  CHECK(found == wanted);
  CHECK(last_event(place.run("infinite"), "non_finite").event->text("operation") == "gemm down dw");
  const auto skipped = records(place.run("infinite"), "optim/skipped_steps");
  CHECK(skipped.rbegin()->second == 0);
  const auto all = events(place.run("zero"));
  CHECK(std::count(all.begin(), all.end(), "non_finite") == 0);

  // Such steps are bounded, too.
  RunConfig config = place.config("bounded");
  config.resilience.non_finite = NonFiniteAction::kZero;
  config.resilience.max_bad_steps = 3;
  std::optional<Plant> plant;
  const SharedError error =
      error_of(1, config, after_step_3(config, 0, [&](Engine& engine) {
                 Device& device = *engine.backend().device;
                 plant.emplace(device, Plant::Place{"gemm down dw", {"backward", 1}, "c", kNaN, 7});
                 device.observe(*plant);
               }));
  CHECK_THAT(error.what(), Contains("3 steps in a row were bad"));
}

TEST_CASE("an update with zeros is skipped, as any other, if what is left of the gradient spikes") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.resilience.non_finite = NonFiniteAction::kZero;
  config.resilience.spike.action = SpikeAction::kSkip;
  config.resilience.spike.window = 8;  // step 5 is the first that is judged
  std::optional<Plant> infinite, huge;
  train(1, config, after_step_3(config, 0, [&](Engine& engine) {
          Device& device = *engine.backend().device;
          infinite.emplace(device, Plant::Place{"gemm down dw", {"backward", 1}, "c", kInfinity, 7});
          huge.emplace(device, Plant::Place{"gemm down dw", {"backward", 1}, "c", 1e20f, 8});
          device.observe(*infinite);
          device.observe(*huge);
        }));
  const auto skipped = records(place.run("run"), "optim/skipped_steps");
  CHECK(skipped.at(4) == 0);
  CHECK(skipped.at(6) == 2);
}
