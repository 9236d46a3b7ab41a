// Finds the first value of a pass that is not finite. As an observer, it sees the pass as it always runs. It checks the
// inputs of each call before it, and its outputs after it. Each check waits for the device, so calls do not overlap,
// and nothing else uses the scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/observer.h"
#include "base/clock.h"

namespace tokamak {

struct NonFinite {
  struct Input {
    std::string text;     // "a BF16 (8192, 4096)"
    double greatest = 0;  // magnitude of its finite values
  };
  int64_t call = 0;       // number of the call; ranks that run one program number theirs alike
  bool is_input = false;  // not finite before the call, which no earlier call has caused
  std::string operation;  // Call::title()
  PassSection section;
  std::string operand;        // "dqkv"
  Tensor tensor;              // which may be overwritten since
  int64_t index = 0;          // of the first such value in the flat tensor
  double value = 0;           // which it has
  int64_t count = 0;          // of such values
  std::vector<Input> inputs;  // before the call
};

class FiniteCheck final : public Observer {
 public:
  // Checks end after so many seconds.
  FiniteCheck(Backend& backend, double seconds);

  void begin(Stream& stream, const Call& call) override;
  void end(Stream& stream, const Call& call) override;

  const std::optional<NonFinite>& found() const { return found_; }  // the first one
  bool gave_up() const { return gave_up_; }                         // the seconds were over before one was found

 private:
  struct Measured {
    double greatest = 0;
    int64_t non_finite = 0;
  };
  bool is_over();
  Measured measure(Stream& stream, Tensor tensor);
  void find(Stream& stream, const Call& call, const Operand& operand, int64_t count, bool is_input);

  Backend& backend_;
  const double seconds_;
  std::unique_ptr<Arena> arena_;
  Tensor statistics_;      // (kStatistics) f64
  bool checking_ = false;  // the call is one of a check
  bool gave_up_ = false;
  int64_t calls_ = 0;
  std::vector<NonFinite::Input> inputs_;  // of the call that has begun
  std::optional<NonFinite> found_;
  Stopwatch watch_;
};

}  // namespace tokamak
