// Runs a recorded step on a clock instead of a device. Streams take their calls in order, events order the streams, and
// concurrent work shares a resource.
#pragma once

#include <string>
#include <vector>

#include "plan/cost_model.h"

namespace tokamak {

std::vector<CallCost> costs_of(const StepRecord& record, const Machine& machine, const Ops& ops);  // of record.calls

struct SimulationOptions {
  double contention = 0;  // Efficiency::contention, of operations during collectives
  double beside = 1;      // Efficiency::beside
  // Times that the record is run; the result is that of the last run, which from 2 on begins with the gathers that the
  // step before has started. 1: the device is idle at first.
  int64_t steps = 1;
};

struct SimulatedStep {
  struct Span {
    int stream;    // in StepRecord::streams
    int64_t call;  // in StepRecord::calls
    double begin, end;
  };
  double seconds = 0;                // until all is done; of several steps: between the ends of the last two
  double exposed_communication = 0;  // a collective runs, and no operation
  std::vector<Span> spans;           // in order of their end; of several steps: those of the last, cut at its ends
  std::vector<double> busy;          // by stream

  std::string trace(const StepRecord& record) const;  // in Chrome's format, which Perfetto opens
};

// Simulates one rank, for all: they run the same step. A wait before an event's first record does not wait. A step ends
// with the work of the stream of its first call.
SimulatedStep simulate(const StepRecord& record, const std::vector<CallCost>& costs, const SimulationOptions& options);

}  // namespace tokamak
