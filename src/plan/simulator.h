// Runs recorded steps on a clock instead of a device. Streams take their calls in order, events order the streams,
// concurrent work shares a resource, and a collective starts when every rank has reached it.
#pragma once

#include <string>
#include <vector>

#include "plan/cost_model.h"

namespace tokamak {

// The step of one rank with the cost of each of its distinct calls. One rank stands for all identical ones.
struct SimulatedRank {
  const StepRecord* record;
  std::vector<CallCost> costs;  // of record->calls
};
std::vector<CallCost> costs_of(const StepRecord& record, const Machine& machine, const Ops& ops);

struct SimulationOptions {
  double contention = 0;  // Efficiency::contention, of operations during collectives
  double beside = 1;      // Efficiency::beside
  // Times that the record is run; the result is that of the last run, which from 2 on begins with the gathers that the
  // step before has started. 1: the device is idle at first.
  int64_t steps = 1;
};

struct SimulatedStep {
  struct Span {
    int rank, stream;  // in StepRecord::streams
    int64_t call;      // in StepRecord::calls
    double begin, end;
  };
  double seconds = 0;                // until the last rank is done; of several steps: between the ends of the last two
  double exposed_communication = 0;  // of rank 0: a collective runs or waits for another rank, and no operation runs
  std::vector<Span> spans;           // in order of their end; of several steps: those of the last, cut at its ends
  std::vector<double> busy;          // of rank 0, by stream

  // The trace in Chrome's format, which Perfetto opens.
  std::string trace(const std::vector<SimulatedRank>& ranks) const;
};

// The nth collective of a stream is the same one on every rank. A wait before an event's first record does not wait. A
// step ends with the work of the stream of its first call, on rank 0. Error(kBug) if calls wait for each other forever.
SimulatedStep simulate(const std::vector<SimulatedRank>& ranks, const SimulationOptions& options);

}  // namespace tokamak
