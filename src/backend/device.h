// A device: memory, streams of ordered work, events between them. On the CPU a stream of normal priority runs its work
// at once, in the calling thread's OpenMP team. A stream of high priority has its own thread, so communication between
// ranks overlaps the operations. Callers must be written for the asynchronous case.
//
// Public methods of a stream notify the device's observers (observer.h), then call the backend's do_ method.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace tokamak {

class Observer;

class Event {
 public:
  virtual ~Event() = default;
  virtual void synchronize() = 0;  // the host waits until the event is reached
};

// The device schedules work of kHigh streams first. On the CPU, such a stream has one thread, and is for few operations
// without scratch memory.
enum class StreamPriority { kNormal, kHigh };

struct StreamOptions {
  const char* name = "other";  // "compute", "gather": a row of a trace
  StreamPriority priority = StreamPriority::kNormal;
};

class Stream {
 public:
  virtual ~Stream() = default;
  void record(Event& event);      // the event is reached when all work enqueued so far is complete
  void wait(const Event& event);  // later work on this stream starts after the event
  void synchronize();             // the host waits; never inside a training step

  // Host work in stream order, for devices in host memory: collectives between CPUs. Whoever waits for the
  // stream gets an exception of the work.
  virtual void run_on_host(std::function<void()> work) { work(); }
  virtual bool has_own_thread() const { return false; }  // which runs the work of run_on_host

  const char* name() const { return name_; }
  const std::vector<Observer*>& observers() const;

 protected:
  virtual void do_record(Event& event) = 0;
  virtual void do_wait(const Event& event) = 0;
  virtual bool blocks_host(const Event&) const { return false; }  // whether do_wait would block the host
  virtual void do_synchronize() = 0;

 private:
  friend class Device;
  const char* name_ = "other";
  const std::vector<Observer*>* observers_ = nullptr;  // of its device
};

// Captured work of a stream. One call replays the same work on the same memory.
class Graph {
 public:
  virtual ~Graph() = default;
  void launch(Stream& stream);

 protected:
  virtual void do_launch(Stream& stream) = 0;
};

// The time at which the device reaches a point in a stream.
class Timestamp {
 public:
  virtual ~Timestamp() = default;
  virtual void record(Stream& stream) = 0;
  virtual std::optional<double> seconds_since(const Timestamp& earlier) const = 0;  // nullopt until it is reached
};

// The part of a pass that the host enqueues, for observers.
struct PassSection {
  const char* pass = "";  // "forward", "recomputation", "backward"; a literal
  int64_t layer = -1;     // -1: outside of the layers
};

class Device : public Allocator {
 public:
  virtual std::string description() const = 0;  // "CPU, AMD EPYC, 2 threads, bf16 by AVX512-BF16"
  std::unique_ptr<Stream> make_stream(const StreamOptions& options = {});  // the device outlives it
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual std::unique_ptr<Timestamp> make_timestamp() = 0;

  // Notifies `observer` of all later work on this device's streams, until it is removed (observer.h, Observation).
  void observe(Observer& observer) { observers_.push_back(&observer); }
  void dismiss(Observer& observer) { std::erase(observers_, &observer); }
  PassSection section() const { return section_; }
  // Whether an observer must see each operation; then passes must not run as graphs.
  bool shows_operations() const;

  // Captures a graph, on devices with launch overhead. `work` enqueues on `stream`, and on streams that it forks from
  // and joins to `stream` by events; nothing runs yet. `work` must not wait for the device, allocate memory, or make a
  // stream wait for earlier work; Error(kUnsupported) if it does.
  virtual bool can_record() const { return false; }
  virtual std::unique_ptr<Graph> record(Stream&, const std::function<void()>& /*work*/) { return nullptr; }

  // Whether device memory is host memory: then the host may access it, and the ranks of a node share it.
  virtual bool uses_host_memory() const = 0;
  virtual int64_t total_bytes() const = 0;      // total memory
  virtual int64_t available_bytes() const = 0;  // free for a plan
  virtual int64_t used_bytes() const = 0;       // in use by this process (CPU) or by all processes (GPU)
  // Estimated bytes that this process uses outside of any plan: before a plan is made (startup), and later (reserve).
  virtual int64_t startup_bytes() const { return 0; }
  virtual int64_t reserve_bytes() const { return 0; }
  virtual int64_t peak_bytes() const = 0;  // maximum of used_bytes, as far as the device records it

  // Peak FLOP/s of dense GEMMs from the vendor's data sheet; 0: unknown. (No reliable table exists for CPUs.)
  virtual double peak_flops(DType dtype) const = 0;

  // Copy tensor.bytes() bytes, in stream order. copy_to_device returns when `host` may be overwritten (an asynchronous
  // device keeps a pinned copy until then). The result of copy_to_host is valid once the stream has reached the copy.
  void copy_to_device(Stream& stream, const void* host, Tensor tensor);
  void copy_to_host(Stream& stream, Tensor tensor, void* host);

 protected:
  virtual std::unique_ptr<Stream> do_make_stream(StreamPriority priority) = 0;
  virtual void do_copy_to_device(Stream& stream, const void* host, Tensor tensor) = 0;
  virtual void do_copy_to_host(Stream& stream, Tensor tensor, void* host) = 0;

 private:
  friend class PassScope;
  std::vector<Observer*> observers_;
  PassSection section_;
};

// The section of the device for the lifetime of this object. Sections nest.
class PassScope {
 public:
  PassScope(Device& device, PassSection section) : device_(device), outer_(std::exchange(device.section_, section)) {}
  ~PassScope() { device_.section_ = outer_; }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

 private:
  Device& device_;
  const PassSection outer_;
};

}  // namespace tokamak
