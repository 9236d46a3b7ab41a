// Recorded steps, run on a clock instead of a device: streams take their calls in order, events order the streams, work
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
  double contention = 0;  // Efficiency::contention, of operations beside running collectives
  double beside = 1;      // Efficiency::beside
  // Times that the record is run, one after another; the result is of the last. From 2 on it is that of a step among
  // others: what its end begins for the next one is under way when the last one begins. 1: on a device at rest.
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

// The nth collective of a stream is the same one on every rank. An event waited for before its first record is no wait. A
// step ends with the work of the stream of its first call, on rank 0.
// Error(kBug) where the calls wait for each other forever.
SimulatedStep simulate(const std::vector<SimulatedRank>& ranks, const SimulationOptions& options);

}  // namespace tokamak
