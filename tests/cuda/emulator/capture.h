// Stream capture and graphs of the emulator, by the rules of CUDA's documentation. While a stream captures, nothing of
// it runs: launches, copies and events are recorded, also on every stream that waits for a captured event. A call that
// would wait for recorded work or allocate memory is refused and invalidates the capture; so is a wait for work outside
// of it. A graph's work runs in an order that its dependencies allow: as recorded. With
// TOKAMAK_EMULATOR_ORDER=reverse the latest recorded work that is ready runs first, with random any ready work.
// A thread has one capture at a time, in mode thread-local: other threads may allocate memory.
#pragma once

#include <cstdint>
#include <vector>

#include "streams.h"

namespace emulator {

// The pieces of recorded work that come before an event, or before the next work on a stream.
using After = std::vector<size_t>;

bool captures(cudaStream_t stream);
bool a_stream_captures();
uint64_t capture_number();  // of the capture in progress, from 1

void record(cudaStream_t stream, Work work);  // on a stream that captures
After recorded(cudaStream_t stream);          // so far
// `stream` continues after work that the capture has recorded, and joins the capture if necessary.
void join(cudaStream_t stream, const After& after);

// For calls that are not allowed while a stream captures: spoils the capture, and returns its argument.
cudaError_t spoil(cudaError_t error);
// cudaErrorStreamCaptureUnsupported, spoiling the capture if there is one; else cudaSuccess.
cudaError_t refuse_while_capturing();

}  // namespace emulator
