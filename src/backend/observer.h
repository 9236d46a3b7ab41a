// Observers of a device's work: each operation, copy, collective and graph launch, around the backend's method, and
// each event record and wait. Profiles, traces, step records and NVTX ranges are observers. Without an observer, a call
// costs one check of an empty list.
#pragma once

#include <string>
#include <variant>

#include "backend/operands.h"
#include "backend/ops.h"

namespace tokamak {

enum class CallKind { kOperation, kCopy, kCollective, kGraph };

// The arguments of an operation; empty for other calls.
#define TOKAMAK_POINTER(name, Args) , const Args*
using OpArguments = std::variant<std::monostate TOKAMAK_OPS(TOKAMAK_POINTER)>;
#undef TOKAMAK_POINTER

struct Call {
  CallKind kind = CallKind::kOperation;
  const char* name = "";   // "gemm", "all_gather", "copy to device"
  const char* label = "";  // says which call of that name: "qkv forward"
  double flops = 0;
  Operands operands;
  int ranks = 1;         // number of ranks in a collective's group
  int stride = 1;        // distance in the run between neighbours of that group
  double exchanged = 0;  // bytes that this rank sends in a collective
  double received = 0;   // bytes that it receives
  OpArguments arguments;

  double bytes() const { return operands.bytes(); }  // lower bound of device memory traffic
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
  // Around a wait that blocks the host, as on a CPU, whose operations run in the calling thread.
  virtual void host_waits(Stream&) {}
  virtual void host_waited(Stream&) {}
  virtual void synchronized(Stream&) {}  // the host synchronised with the stream
  // Whether passes must run eagerly, because the observer needs to see each operation.
  virtual bool wants_operations() const { return true; }
};

// Registers an observer with a device for the lifetime of this object.
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

// Runs `work`, described by `make_call()`, between the begin and end notifications of the stream's observers.
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
