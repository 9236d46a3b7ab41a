// Runs a recorded step on a clock instead of a device. Streams take their calls in order, events order the streams, and
// concurrent work shares a resource.
#pragma once

#include <string>
#include <vector>

#include "plan/cost_model.h"

namespace tokamak {

std::vector<CallCost> costs_of(const StepRecord& record, const Machine& machine, const Ops& ops);  // of record.calls

struct SimulationOptions {
  double contention = 0;  // Efficiency::contention: slows operations during collectives
  double beside = 1;      // Efficiency::beside: slows collectives during operations
  // How often the record is run. The result is that of the last run, which begins with the gathers that the run before
  // has started. 1: the device is idle at first.
  int64_t steps = 1;
};

struct SimulatedStep {
  struct Span {
    int stream;    // in StepRecord::streams
    int64_t call;  // in StepRecord::calls
    double begin, end;
  };
  double seconds = 0;                // until all is done; with several steps, between the ends of the last two
  double exposed_communication = 0;  // seconds in which collectives run, but no operation
  std::vector<Span> spans;           // in order of their end; with several steps, only the last step's, cut to it
  std::vector<double> busy;          // seconds, by stream

  std::string trace(const StepRecord& record) const;  // in Chrome's format, which Perfetto opens
};

// Simulates one rank, since all run the same step. A wait for an event that is not recorded yet returns at once. A step
// ends when the stream of its first call has finished its work.
SimulatedStep simulate(const StepRecord& record, const std::vector<CallCost>& costs, const SimulationOptions& options);

}  // namespace tokamak
