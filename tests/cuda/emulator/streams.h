// Streams and events of the emulator. Work on a stream is deferred until something waits for it: the host that
// synchronises, or a stream that waits for an event. So a read without a wait reads too early.
// TOKAMAK_EMULATOR_ORDER=reverse: only the oldest stream defers its work, the others run it at once. So they overwrite
// unread data if a wait is missing. TOKAMAK_EMULATOR_ORDER=random: a random stream runs some of its work whenever any
// is enqueued. TOKAMAK_EMULATOR_ORDER=urgent: streams of high priority run at once, and those of normal priority late.
// CUDA_LAUNCH_BLOCKING=1 does the same as on a GPU: nothing is deferred.
#pragma once

#include <functional>

#include "cuda_runtime.h"

namespace emulator {

using Work = std::function<void()>;

// The default stream (null) does its work at once: the others do not wait for it, nor it for them.
void enqueue(cudaStream_t stream, Work work);

// Ends the random choice of streams: two ranks that choose different collectives would wait for each other.
void expect_other_ranks();

void run_all(cudaStream_t stream);
void run_all_streams();

}  // namespace emulator
