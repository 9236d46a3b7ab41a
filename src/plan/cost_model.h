// The time of each call of a step, if it ran alone on a machine. An operation takes the time of its FLOPs at the
// attained rate plus that of its bytes; a collective takes a time per hop plus that of its bytes.
#pragma once

#include "plan/hardware.h"
#include "plan/step_record.h"

namespace tokamak {

struct CallCost {
  enum class Resource { kDevice, kLink };
  Resource resource = Resource::kDevice;
  double fixed = 0;  // seconds, whatever else runs
  double work = 0;   // seconds of the resource, which concurrent calls share
  double seconds() const { return fixed + work; }
};

// `ops` splits the head into chunks, as in the recorded step.
CallCost cost_of(const StepRecord::Distinct& call, const Machine& machine, const Ops& ops);

// Bytes per second that each rank of a group sends in large messages. Ranks are placed node by node.
double bus_rate(const Machine& machine, int ranks, int stride = 1);
// As bus_rate(), of messages between single ranks. All ranks send some, so each GPU has its share of a node's ports.
double peer_rate(const Machine& machine, int ranks, int stride = 1);

// Seconds of all calls of the step, summed; `memory` is that of other operations and copies.
struct CostTerms {
  double gemm = 0, attention = 0, memory = 0, collectives = 0;
};
CostTerms terms_of(const StepRecord& record, const Machine& machine, const Ops& ops);

}  // namespace tokamak
