// Writes values that are not finite, or too large, into the memory of toy runs.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "backend/observer.h"
#include "train/toy_training.h"

namespace tokamak {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr float kHuge = 3e38f;

inline void set(Tensor tensor, int64_t index, float value) {
  if (tensor.dtype() == DType::kBF16) {
    tensor.as<bf16>()[index] = bf16(value);
  } else if (tensor.dtype() == DType::kF64) {
    tensor.as<double>()[index] = value;
  } else {
    tensor.as<float>()[index] = value;
  }
}

// Writes a value into an operand after each call of one title in one section: at one index, or everywhere.
class Plant : public Observer {
 public:
  static constexpr int64_t kEverywhere = -1;
  struct Place {
    std::string title;
    PassSection section;
    std::string operand;
    float value = kNaN;
    int64_t index = kEverywhere;  // modulo the elements
  };
  Plant(Device& device, Place place) : device_(device), place_(std::move(place)) {}

  void begin(Stream&, const Call&) override {}
  void end(Stream& stream, const Call& call) override {
    const PassSection section = device_.section();
    if (call.title() != place_.title || section.layer != place_.section.layer) return;
    if (std::string(section.pass) != place_.section.pass) return;
    for (const Operand& operand : call.operands) {
      if (operand.name != place_.operand) continue;
      stream.run_on_host([place = place_, tensor = *operand.tensor] {
        for (int64_t i = 0; i < tensor.count(); ++i) {
          if (place.index == kEverywhere || i == place.index % tensor.count()) set(tensor, i, place.value);
        }
      });
    }
  }

 private:
  Device& device_;
  Place place_;
};

// Options of a run that calls `act` after step 3, on one rank.
inline ToyRunOptions after_step_3(RunConfig& config, int rank, const std::function<void(Engine&)>& act) {
  config.training.evals = {{}};
  config.training.evals_interval = 3;
  ToyRunOptions options;
  options.evals = [act, rank, calls = std::make_shared<std::atomic<int>>(0)](Engine& engine,
                                                                             const std::function<void()>&) {
    if (engine.comm().rank() == rank && (*calls)++ == 0) {
      dynamic_cast<ToyDevice&>(*engine.backend().device).finish_streams();  // gathers of the next step read the weights
      act(engine);
    }
    return std::vector<NamedValue>();
  };
  return options;
}

}  // namespace tokamak
