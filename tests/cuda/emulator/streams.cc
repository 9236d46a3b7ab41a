#include "streams.h"

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>
#include <string_view>

#include "calls.h"

struct emulator_stream {
  uint64_t id;  // a later one may lie at the address of one that is gone
  bool late = true;
  std::deque<emulator::Work> waiting;
  uint64_t enqueued = 0;
  uint64_t begun() const { return enqueued - waiting.size(); }
};

struct emulator_event {
  cudaStream_t stream = nullptr;  // null: never recorded, hence reached
  uint64_t id = 0;                // of the stream
  uint64_t position = 0;          // what it had enqueued
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

void reach(const emulator_event& event) {
  const bool lives = streams().count(event.stream) == 1 && event.stream->id == event.id;
  if (lives) run_up_to(event.stream, event.position);  // a stream that is gone has done all
}

}  // namespace

namespace emulator {

void enqueue(cudaStream_t stream, Work work) {
  if (stream == nullptr || launches_block()) return work();
  stream->waiting.push_back(std::move(work));
  ++stream->enqueued;
  if (!stream->late) run_all(stream);
}

void run_all(cudaStream_t stream) {
  if (stream != nullptr) run_up_to(stream, stream->enqueued);
}

void run_all_streams() {
  for (const cudaStream_t stream : streams()) run_all(stream);
}

}  // namespace emulator

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  static uint64_t made = 0;
  *stream =
      new emulator_stream{.id = ++made, .late = streams().empty() || !is_set("TOKAMAK_EMULATOR_ORDER", "reverse")};
  streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  emulator::run_all(stream);
  streams().erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emulator::count_call("cudaStreamSynchronize");
  emulator::run_all(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  emulator::count_call("cudaDeviceSynchronize");
  emulator::run_all_streams();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  emulator::enqueue(stream, [now = *event] { reach(now); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new emulator_event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *event = stream == nullptr ? emulator_event{} : emulator_event{stream, stream->id, stream->enqueued};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  reach(*event);
  return cudaSuccess;
}
