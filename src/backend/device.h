// A device: memory, streams of ordered work, events between them. On the CPU a stream runs its work at once, in the
// calling thread's OpenMP team, so events are always reached; callers are written for the asynchronous case.
// What a stream is given passes public methods that show it to the device's observers (observer.h) and call the
// backend's do_ method.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
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

// Whose work the device takes first where two streams have some.
enum class StreamPriority { kNormal, kHigh };

struct StreamOptions {
  const char* name = "other";  // "compute", "gather": a row of a trace
  StreamPriority priority = StreamPriority::kNormal;
};

class Stream {
 public:
  virtual ~Stream() = default;
  void record(Event& event);      // the event is reached when all work enqueued so far is done
  void wait(const Event& event);  // later work on this stream starts after the event
  void synchronize();             // the host waits; never inside a training step

  const char* name() const { return name_; }
  const std::vector<Observer*>& observers() const;

 protected:
  virtual void do_record(Event& event) = 0;
  virtual void do_wait(const Event& event) = 0;
  virtual void do_synchronize() = 0;

 private:
  friend class Device;
  const char* name_ = "other";
  const std::vector<Observer*>* observers_ = nullptr;  // its device's
};

// What a stream was given once, to be given to it again by one call: the same work on the same memory.
class Graph {
 public:
  virtual ~Graph() = default;
  void launch(Stream& stream);

 protected:
  virtual void do_launch(Stream& stream) = 0;
};

// When the device reaches a place in a stream.
class Timestamp {
 public:
  virtual ~Timestamp() = default;
  virtual void record(Stream& stream) = 0;
  virtual std::optional<double> seconds_since(const Timestamp& earlier) const = 0;  // nothing before it is reached
};

class Device : public Allocator {
 public:
  virtual std::string description() const = 0;  // "CPU, AMD EPYC, 2 threads, bf16 by AVX512-BF16"
  std::unique_ptr<Stream> make_stream(const StreamOptions& options = {});  // outlived by the device
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual std::unique_ptr<Timestamp> make_timestamp() = 0;

  // From now on `observer` sees what this device's streams are given; until it is dismissed (observer.h, Observation).
  void observe(Observer& observer) { observers_.push_back(&observer); }
  void dismiss(Observer& observer) { std::erase(observers_, &observer); }
  // Whether an observer must see each operation: then none may hide in a graph.
  bool shows_operations() const;

  // Graphs are for devices whose work has to be launched. `work` enqueues on `stream`, and on streams that it makes
  // wait for it and that it waits for in the end; nothing of it runs yet. It may neither wait for the device, nor take
  // memory, nor let a stream wait for work from before; Error(kDevice) where it does.
  virtual bool can_record() const { return false; }
  virtual std::unique_ptr<Graph> record(Stream& stream, const std::function<void()>& work);

  // Whether its memory is the node's: then the host may touch it, and the ranks of a node share it. A GPU's is its own.
  virtual bool uses_host_memory() const = 0;
  virtual int64_t total_bytes() const = 0;      // that it has in all
  virtual int64_t available_bytes() const = 0;  // that a plan may still take
  virtual int64_t used_bytes() const = 0;       // now: by this process (CPU), by all (GPU)
  // Bytes of it that this process takes outside of any plan, about: before a plan is made, and later (reserved).
  virtual int64_t startup_bytes() const { return 0; }
  virtual int64_t reserve_bytes() const { return 0; }
  virtual int64_t peak_bytes() const = 0;  // the most that used_bytes was, as far as the device knows

  // FLOP/s of dense GEMMs, as its vendor states them; 0: unknown. (CPUs have no honest table.)
  virtual double peak_flops(DType dtype) const = 0;

  // Copies of tensor.bytes() bytes, in the order of the stream. copy_to_device returns when `host` may be written again
  // (a device that copies later keeps a pinned copy until then); what copy_to_host brings is there when the stream has
  // passed.
  void copy_to_device(Stream& stream, const void* host, Tensor tensor);
  void copy_to_host(Stream& stream, Tensor tensor, void* host);

 protected:
  virtual std::unique_ptr<Stream> do_make_stream(StreamPriority priority) = 0;
  virtual void do_copy_to_device(Stream& stream, const void* host, Tensor tensor) = 0;
  virtual void do_copy_to_host(Stream& stream, Tensor tensor, void* host) = 0;

 private:
  std::vector<Observer*> observers_;
};

inline std::unique_ptr<Graph> Device::record(Stream&, const std::function<void()>&) { return nullptr; }

}  // namespace tokamak
