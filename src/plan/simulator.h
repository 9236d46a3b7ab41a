// A recorded step, run on a clock instead of a device: streams take their calls in order, events order the streams, work
// on one resource shares it, and a collective starts when every rank has come to it.
#pragma once

#include <string>
#include <vector>

#include "plan/cost_model.h"

namespace tokamak {

// The step of one rank with the cost of each of its distinct calls. One rank stands for all, where all are alike.
struct SimulatedRank {
  const StepRecord* record;
  std::vector<CallCost> costs;  // of record->calls
};
std::vector<CallCost> costs_of(const StepRecord& record, const Machine& machine, const Ops& ops);

struct SimulationOptions {
  double contention = 0;    // share of the device that running collectives take from operations
  bool host_order = false;  // all streams' work goes in the order of the host's calls
};

struct SimulatedStep {
  struct Span {
    int rank, stream;  // in StepRecord::streams
    int64_t call;      // in StepRecord::calls
    double begin, end;
  };
  double seconds = 0;                // until the last rank is done
  double exposed_communication = 0;  // of rank 0: a collective runs or waits for another rank, and no operation runs
  std::vector<Span> spans;           // in order of their end
  std::vector<double> busy;          // of rank 0, by stream

  // The trace in Chrome's format, which Perfetto opens.
  std::string trace(const std::vector<SimulatedRank>& ranks) const;
};

// The nth collective of a stream is the same one on every rank. An event waited for before its first record is no wait.
// Error(kBug) where the calls wait for each other forever.
SimulatedStep simulate(const std::vector<SimulatedRank>& ranks, const SimulationOptions& options);

}  // namespace tokamak
