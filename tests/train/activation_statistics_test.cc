// metrics.activation_statistics of whole runs, against the values that the operations of the step's last micro-batch
// have written, copied on each rank.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <mutex>

#include "backend/observer.h"
#include "monitor/jsonl.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

// Values of one pass on one rank, by activation. Each forward pass replaces those of the one before.
class Copies : public Observer {
 public:
  explicit Copies(Device& device) : device_(device) {}

  void begin(Stream&, const Call&) override {}
  void end(Stream&, const Call& call) override {
    const PassSection section = device_.section();
    const std::string title = call.title();
    if (title == "head") return;
    if (std::string(section.pass) != "forward") {
      if (title == "gemm head") copy(call, "c", "logits");
      return;
    }
    const std::string layer = str("layers.", section.layer, ".");
    if (title == "embedding") copy(call, "out", "embedding");
    if (title == "attention") {
      copy(call, "out", layer + "attention");
      copy(call, "lse", layer + "attention_logits");
    }
    if (title == "swiglu") copy(call, "out", layer + "mlp");
    if (title == "gemm down forward") copy(call, "c", layer + "output");
    if (title == "rmsnorm" && section.layer < 0) copy(call, "y", "norm");
  }

  std::map<std::string, std::vector<float>> values;

 private:
  void copy(const Call& call, const char* operand, const std::string& name) {
    for (const Operand& one : call.operands) {
      if (one.name != std::string(operand)) continue;
      std::vector<float>& to = values[name];
      to.clear();
      for (int64_t i = 0; i < one.tensor->count(); ++i) {
        to.push_back(one.tensor->dtype() == DType::kBF16 ? static_cast<float>(one.tensor->as<bf16>()[i])
                                                         : one.tensor->as<float>()[i]);
      }
    }
  }
  Device& device_;
};

MetricRecord activations_at(const std::string& run, int64_t step) {
  MetricRecord found;
  read_records(
      run + "/tensors.jsonl",
      [&](const MetricRecord& record) {
        if (record.step == step && !record.tensors.empty()) found = record;
      },
      ReadTensors::kYes);
  return found;
}

}  // namespace

TEST_CASE("statistics of activations are those of what the operations wrote, over all ranks") {
  const ToyPlace place;
  for (const int ranks : {1, 3}) {
    for (const Precision compute : {Precision::kF32, Precision::kBF16}) {
      const std::string name = str("run", ranks, compute == Precision::kF32 ? "" : "bf16");
      INFO(name);
      RunConfig config = place.config(name, ranks);
      config.precision.compute = compute;
      config.training.micro_batch_size.value = 2;
      config.training.max_steps = 2;
      config.data.validation.clear();  // its passes would come after those of the step
      config.metrics.tensor_statistics = 0;
      config.metrics.activation_statistics.interval = 1;
      config.training.evals = {{}};
      config.training.evals_interval = 1;
      std::vector<std::unique_ptr<Copies>> copies(static_cast<size_t>(ranks));
      std::vector<std::map<std::string, std::vector<float>>> of_step_2(static_cast<size_t>(ranks));
      ToyRunOptions options;
      options.evals = [&](Engine& engine, const std::function<void()>&) {
        const auto rank = static_cast<size_t>(engine.comm().rank());
        if (!copies[rank]) {
          copies[rank] = std::make_unique<Copies>(*engine.backend().device);
          engine.backend().device->observe(*copies[rank]);
        } else {
          of_step_2[rank] = copies[rank]->values;
        }
        return std::vector<NamedValue>();
      };
      train(ranks, config, options);
      const MetricRecord record = activations_at(place.run(name), 2);
      REQUIRE(record.tensors.size() == 3 * 4 + 3);
      for (const TensorRecord& tensor : record.tensors) {
        INFO(tensor.name);
        std::vector<float> values;
        for (const auto& of_rank : of_step_2) {
          const std::vector<float>& more = of_rank.at(tensor.name);
          values.insert(values.end(), more.begin(), more.end());
        }
        const TensorSummary& found = tensor.at("activations");
        double squares = 0, least = INFINITY, greatest = -INFINITY;
        int64_t zeros = 0;
        for (const float value : values) {
          squares += double(value) * value;
          least = std::min<double>(least, value);
          greatest = std::max<double>(greatest, value);
          if (value == 0) ++zeros;
        }
        CHECK(tensor.elements == std::ssize(values));
        CHECK(found.rms == Approx(std::sqrt(squares / double(values.size()))).epsilon(1e-12));
        CHECK(static_cast<float>(found.min) == static_cast<float>(least));
        CHECK(static_cast<float>(found.max) == static_cast<float>(greatest));
        CHECK(found.zeros == zeros);
        CHECK(found.non_finite == 0);
      }
    }
  }
}

TEST_CASE("activations are measured at their own interval, by pattern, beside those of weights, and change no bit") {
  const ToyPlace place;
  const auto with = [&](const std::string& name, int64_t interval, std::vector<std::string> match = {"*"}) {
    RunConfig config = place.config(name, 2);
    config.metrics.tensor_statistics = 3;
    config.metrics.activation_statistics = {interval, std::move(match)};
    train(2, config);
    return saved_state(place.checkpoint(name, 6));
  };
  const ToyState without = with("none", 0);
  CHECK((with("some", 2, {"layers.1.attention*"}) == without));
  CHECK((with("all", 1) == without));
  const auto names_at = [&](int64_t step) {
    std::vector<std::string> names;
    for (const TensorRecord& one : activations_at(place.run("some"), step).tensors) {
      if (one.find("activations") != nullptr) names.push_back(one.name);
    }
    return names;
  };
  const std::vector<std::string> wanted = {"layers.1.attention", "layers.1.attention_logits"};
  for (const int64_t step : {2, 4, 6}) CHECK(names_at(step) == wanted);
  CHECK(names_at(3).empty());
  CHECK(activations_at(place.run("some"), 3).tensors.size() > 20);
  CHECK(activations_at(place.run("some"), 6).tensors.size() == activations_at(place.run("some"), 3).tensors.size() + 2);
}

TEST_CASE("statistics of activations are in the memory plan, and take nothing where there are none") {
  const ToyPlace place;
  const auto planned = [&](int64_t interval, std::vector<std::string> match) {
    RunConfig config = place.config("run");
    config.metrics.activation_statistics = {interval, std::move(match)};
    return planned_bytes_of(config, "activation statistics/");
  };
  CHECK(planned(0, {"*"}) == 0);
  CHECK(planned(1, {"*"}) > planned(1, {"layers.*"}));
  CHECK(planned(1000, {"*"}) == planned(1, {"*"}));
}
