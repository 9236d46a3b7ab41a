#include "streams.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "calls.h"
#include "capture.h"
#include "emulator.h"
#include "faults.h"

struct emulator_stream {
  uint64_t id;  // a new stream may have the address of a destroyed one
  int priority;
  bool late = true;
  std::deque<emulator::Work> waiting;
  uint64_t enqueued = 0;
  uint64_t begun() const { return enqueued - waiting.size(); }
};

struct emulator_event {
  cudaStream_t stream = nullptr;  // null: never recorded, hence reached
  uint64_t id = 0;                // of the stream
  uint64_t position = 0;          // the count of the stream's work before the event
  uint64_t capture = 0;           // the capture that it was recorded in; 0: none
  emulator::After after = {};     // the recorded work that comes before the event
  bool timed = false;
  double seconds = 0;  // time at which it was reached
};

namespace {

std::set<cudaStream_t>& streams() {
  static std::set<cudaStream_t> all;
  return all;
}

bool is_set(const char* name, std::string_view value) {
  const char* const set = std::getenv(name);
  return set != nullptr && set == value;
}
bool launches_block() {
  static const bool block = is_set("CUDA_LAUNCH_BLOCKING", "1");
  return block;
}

void run_up_to(cudaStream_t stream, uint64_t position) {
  while (stream->begun() < position) {
    const emulator::Work work = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    work();  // which may run other streams, up to events that were recorded before it was enqueued
  }
}

bool& other_ranks() {
  static bool expected = false;
  return expected;
}

// Chooses among the streams in order of creation, so that a seed determines the choice.
void run_some(std::mt19937& random) {
  std::vector<cudaStream_t> all(streams().begin(), streams().end());
  std::sort(all.begin(), all.end(), [](cudaStream_t a, cudaStream_t b) { return a->id < b->id; });
  const cudaStream_t stream = all[random() % all.size()];
  run_up_to(stream, stream->begun() + random() % (stream->waiting.size() + 1));
}

// Whether the event's stream exists. A destroyed stream has done all its work.
bool lives(const emulator_event& event) { return streams().count(event.stream) == 1 && event.stream->id == event.id; }
void reach(const emulator_event& event) {
  if (lives(event)) run_up_to(event.stream, event.position);
}
bool is_reached(const emulator_event& event) { return !lives(event) || event.stream->begun() >= event.position; }

}  // namespace

namespace emulator {

void enqueue(cudaStream_t stream, Work work) {
  if (captures(stream)) return record(stream, std::move(work));
  if (stream == nullptr || launches_block()) return work();
  stream->waiting.push_back(std::move(work));
  ++stream->enqueued;
  if (!stream->late) return run_all(stream);
  if (std::mt19937* const random = random_order(); random != nullptr && !other_ranks()) run_some(*random);
}

void expect_other_ranks() { other_ranks() = true; }

void run_all(cudaStream_t stream) {
  if (stream != nullptr) run_up_to(stream, stream->enqueued);
}

void run_all_streams() {
  for (const cudaStream_t stream : streams()) run_all(stream);
}

}  // namespace emulator

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  static uint64_t made = 0;
  const bool urgent = is_set("TOKAMAK_EMULATOR_ORDER", "urgent"), reverse = is_set("TOKAMAK_EMULATOR_ORDER", "reverse");
  const bool late = urgent ? priority == 0 : streams().empty() || !reverse;
  *stream = new emulator_stream{.id = ++made, .priority = priority, .late = late};
  streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  emulator::run_all(stream);
  streams().erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (emulator::captures(stream)) return emulator::spoil(cudaErrorStreamCaptureUnsupported);
  emulator::count_call("cudaStreamSynchronize");
  emulator::run_all(stream);
  return emulator::fault_of_device();
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = emulator::refuse_while_capturing(); error != cudaSuccess) return error;
  emulator::count_call("cudaDeviceSynchronize");
  emulator::run_all_streams();
  return emulator::fault_of_device();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->capture != 0) {
    if (event->capture != emulator::capture_number()) return cudaErrorCapturedEvent;
    emulator::join(stream, event->after);
    return cudaSuccess;
  }
  if (emulator::captures(stream)) return emulator::spoil(cudaErrorStreamCaptureIsolation);
  emulator::enqueue(stream, [now = *event] { reach(now); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new emulator_event{.timed = (flags & cudaEventDisableTiming) == 0};
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event->timed) reach(*event);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const bool timed = event->timed;
  if (emulator::captures(stream)) {
    *event = {.capture = emulator::capture_number(), .after = emulator::recorded(stream), .timed = timed};
    return cudaSuccess;
  }
  if (timed) emulator::enqueue(stream, [event] { event->seconds = tokamak::now_seconds(); });
  const double seconds = event->seconds;  // where streams do their work at once
  *event = {.timed = timed, .seconds = seconds};
  if (stream == nullptr) return cudaSuccess;
  event->stream = stream;
  event->id = stream->id;
  event->position = stream->enqueued;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->capture != 0) {
    return emulator::a_stream_captures() ? emulator::spoil(cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
  }
  return is_reached(*event) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->timed || !end->timed) return cudaErrorInvalidResourceHandle;
  if (!is_reached(*begin) || !is_reached(*end)) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(1e3 * (end->seconds - begin->seconds));
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->capture != 0) {
    return emulator::a_stream_captures() ? emulator::spoil(cudaErrorCapturedEvent) : cudaErrorCapturedEvent;
  }
  reach(*event);
  return emulator::fault_of_device();
}
