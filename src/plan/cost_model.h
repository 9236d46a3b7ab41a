// How long a call of a step takes by itself on a machine: what the simulator adds up. An operation takes the time of its
// FLOPs at the attained rate plus that of its bytes; a collective a time for each hop plus that of its bytes.
#pragma once

#include "plan/hardware.h"
#include "plan/step_record.h"

namespace tokamak {

struct CallCost {
  enum class Resource { kDevice, kLink };
  Resource resource = Resource::kDevice;
  double fixed = 0;  // seconds that pass whatever else runs
  double work = 0;   // seconds of the resource, which those that run at once share
  double seconds() const { return fixed + work; }
};

// `ops` cuts the head into chunks, as the step that was recorded did.
CallCost cost_of(const StepRecord::Distinct& call, const Machine& machine, const Ops& ops);

// Of a group of so many ranks, placed node by node: bytes per second that each rank sends with large messages.
double bus_rate(const Machine& machine, int ranks, int apart = 1);

// Seconds of all calls of the step, as if one after another; `memory`: of other operations and copies.
struct CostTerms {
  double gemm = 0, attention = 0, memory = 0, collectives = 0;
};
CostTerms terms_of(const StepRecord& record, const Machine& machine, const Ops& ops);

}  // namespace tokamak
