// Those who watch what a device is given: each operation, copy, collective and graph, around the backend's method, and
// each event recorded and waited for. Profiles, traces, records of a step and a profiler's ranges are observers. Without
// one, a call costs a look at an empty list.
#pragma once

#include <string>
#include <variant>

#include "backend/operands.h"
#include "backend/ops.h"

namespace tokamak {

enum class CallKind { kOperation, kCopy, kCollective, kGraph };

// The arguments of an operation, none for other calls.
#define TOKAMAK_POINTER(name, Args) , const Args*
using OpArguments = std::variant<std::monostate TOKAMAK_OPS(TOKAMAK_POINTER)>;
#undef TOKAMAK_POINTER

struct Call {
  CallKind kind = CallKind::kOperation;
  const char* name = "";   // "gemm", "all_gather", "copy to device"
  const char* label = "";  // which of several: "qkv forward"
  double flops = 0;
  Operands operands;
  int ranks = 1;         // of a collective's group
  double exchanged = 0;  // bytes that this rank sends, and as many that it receives, in a collective
  OpArguments arguments;

  double bytes() const { return operands.bytes(); }  // read and written at least, in the memory of the device
  std::string title() const;                         // "gemm qkv forward"
  std::string text() const;  // "gemm qkv forward a BF16 (8192, 4096), b^T BF16 (6144, 4096) -> c BF16 (8192, 6144)"
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void begin(Stream& stream, const Call& call) = 0;
  virtual void end(Stream& stream, const Call& call) = 0;
  virtual void recorded(Stream&, const Event&) {}
  virtual void waited(Stream&, const Event&) {}
  virtual void synchronized(Stream&) {}  // the host has waited
  // Whether passes are to run as they are written, so that this sees what a graph would hide.
  virtual bool wants_operations() const { return true; }
};

// Watches a device while it lives.
class Observation {
 public:
  Observation(Device& device, Observer& observer) : device_(device), observer_(observer) { device_.observe(observer_); }
  ~Observation() { device_.dismiss(observer_); }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  Device& device_;
  Observer& observer_;
};

// Runs `work`, which is `make_call()`, before the eyes of the stream's observers.
template <class MakeCall, class Work>
void observed(Stream& stream, const MakeCall& make_call, const Work& work) {
  const std::vector<Observer*>& observers = stream.observers();
  if (observers.empty()) return work();
  const Call call = make_call();
  for (Observer* observer : observers) observer->begin(stream, call);
  work();
  for (Observer* observer : observers) observer->end(stream, call);
}

}  // namespace tokamak
