// A device: memory, streams of ordered work, events between them. On the CPU a stream runs its work at once, in the
// calling thread's OpenMP team, so events are always reached; callers are written for the asynchronous case.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace tokamak {

class Event {
 public:
  virtual ~Event() = default;
  virtual void synchronize() = 0;  // the host waits until the event is reached
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual void record(Event& event) = 0;      // the event is reached when all work enqueued so far is done
  virtual void wait(const Event& event) = 0;  // later work on this stream starts after the event
  virtual void synchronize() = 0;             // the host waits; never inside a training step
};

// What a stream was given once, to be given to it again by one call: the same work on the same memory.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch(Stream& stream) = 0;
};

// How long the device takes for what a stream is given between start and stop.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void start(Stream& stream) = 0;
  virtual void stop(Stream& stream) = 0;
  virtual std::optional<double> seconds() = 0;  // nothing while it is not over; never waits
};

// Whose work the device takes first where two streams have some.
enum class StreamPriority { kNormal, kHigh };

class Device : public Allocator {
 public:
  virtual std::string description() const = 0;  // "CPU, AMD EPYC, 2 threads, bf16 by AVX512-BF16"
  virtual std::unique_ptr<Stream> make_stream(StreamPriority priority = StreamPriority::kNormal) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  // Graphs are for devices whose work has to be launched. `work` enqueues on `stream`, and on streams that it makes
  // wait for it and that it waits for in the end; nothing of it runs yet. It may neither wait for the device, nor take
  // memory, nor let a stream wait for work from before; Error(kDevice) where it does.
  virtual bool can_record() const { return false; }
  virtual std::unique_ptr<Graph> record(Stream& stream, const std::function<void()>& work);
  virtual std::unique_ptr<Timer> make_timer();

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
  virtual void copy_to_device(Stream& stream, const void* host, Tensor tensor) = 0;
  virtual void copy_to_host(Stream& stream, Tensor tensor, void* host) = 0;
};

inline std::unique_ptr<Graph> Device::record(Stream&, const std::function<void()>&) { return nullptr; }
inline std::unique_ptr<Timer> Device::make_timer() { return nullptr; }

}  // namespace tokamak
