#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"

namespace tokamak {

namespace {

// Bytes per logit beyond the operands of the head's call: the GEMM writes logits, the loss reads them twice and writes
// dlogits, two GEMMs read those. If dlogits overwrite the logits, half of the second read hits the cache.
double head_bytes_per_logit(DType logits, DType act) {
  const auto size = double(size_of(logits)), gradient = double(size_of(act));
  return size + (logits == act ? 1.5 : 2) * size + 3 * gradient;
}

double gemm_seconds(double flops, double bytes, DType dtype, const Machine& machine) {
  return flops / (machine.peak_flops(dtype) * machine.efficiency.gemm) +
         bytes / (machine.memory_rate * machine.efficiency.memory);
}

// The measured call of this title nearest in shape or, without one, in bytes. For a GEMM, any GEMM will do.
const MeasuredOp* nearest_measured(const Machine& machine, const std::string& title, double m, double n, double k,
                                   double bytes) {
  const MeasuredOp* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  const auto apart = [](double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0; };
  for (const MeasuredOp& op : machine.measured) {
    const bool gemms = m > 0 && op.m > 0;
    if (!gemms && op.name != title) continue;
    const double distance = gemms ? apart(op.m, m) + apart(op.n, n) + apart(op.k, k) + (op.name == title ? 0 : 0.1)
                                  : apart(op.bytes, bytes);
    if (distance < least) {
      least = distance;
      best = &op;
    }
  }
  return best;
}

double measured_seconds(const MeasuredOp& op, double flops, double bytes) {
  if (op.flops > 0 && flops > 0) return op.seconds * flops / op.flops;
  return op.bytes > 0 ? op.seconds * bytes / op.bytes : op.seconds;
}

// Attention also takes an exponential of each score, which costs as much as kExponentials more columns of its GEMMs,
// whatever the head's width. Efficiency::attention holds for heads of 128.
double attention_seconds(double flops, DType dtype, const HeadLayout& heads, const Machine& machine) {
  constexpr double kExponentials = 64, kUsual = 128;
  const double slower = (1 + kExponentials / double(heads.head_dim)) / (1 + kExponentials / kUsual);
  return slower * flops / (machine.peak_flops(dtype) * machine.efficiency.attention);
}

// The slowest link of a group. `sharers` send through the ports of a node at once.
double link_rate(const Machine& machine, int ranks, int stride, int sharers) {
  const double link = machine.link_rate, network = machine.network_rate / sharers;
  const double rate = ranks * stride <= machine.gpus_per_node || machine.network_rate == 0
                          ? link
                          : (link > 0 && machine.gpus_per_node > 1 ? std::min(link, network) : network);
  return rate * machine.efficiency.bus;
}

CallCost collective_cost(const StepRecord::Distinct& call, const Machine& machine) {
  if (call.ranks <= 1) return {};
  const double bytes = std::max(call.exchanged, call.received);
  if (const MeasuredOp* op = nearest_measured(machine, call.name, 0, 0, 0, bytes)) {
    return {.resource = CallCost::Resource::kLink, .fixed = 0, .work = measured_seconds(*op, 0, bytes)};
  }
  if (call.name == "exchange") {  // has all messages under way at once
    return {.resource = CallCost::Resource::kLink,
            .fixed = machine.hop_seconds,
            .work = bytes / peer_rate(machine, call.ranks, call.stride)};
  }
  return {.resource = CallCost::Resource::kLink,
          .fixed = machine.hop_seconds * double(call.ranks - 1),
          .work = bytes / bus_rate(machine, call.ranks, call.stride)};
}

double gemm_cost(const Gemm& gemm, double bytes, const Machine& machine) {
  const RecordedGemm shape{.name = gemm.label, .call = gemm};
  const auto m = double(shape.m()), n = double(shape.n()), k = double(shape.k());
  if (const MeasuredOp* op = nearest_measured(machine, str("gemm ", gemm.label), m, n, k, bytes)) {
    return measured_seconds(*op, shape.flops(), bytes);
  }
  return gemm_seconds(shape.flops(), bytes, gemm.a.dtype(), machine);
}

double head_cost(const StepRecord::Distinct& call, const LinearCrossEntropy& head, const Machine& machine,
                 const Ops& ops) {
  if (const MeasuredOp* op = nearest_measured(machine, call.title, 0, 0, 0, call.bytes)) {
    return measured_seconds(*op, call.flops, call.bytes);
  }
  const auto tokens = double(head.hidden.dim(0)), vocab = double(head.weight.dim(0));
  const DType act = head.hidden.dtype();
  const HeadChunk chunk = ops.head_chunk(head.hidden.dim(0), head.weight.dim(0), act);
  const double chunks = std::ceil(tokens / double(chunk.rows));  // each chunk reads the weight matrix again
  const double bytes = call.bytes * chunks + head_bytes_per_logit(chunk.logits, act) * tokens * vocab;
  return gemm_seconds(call.flops, bytes, act, machine);
}

}  // namespace

double bus_rate(const Machine& machine, int ranks, int stride) {
  // A ring enters and leaves each node once on every port, so one group has all ports of a node. A group with a stride
  // shares them with as many other groups.
  return link_rate(machine, ranks, stride, std::min(stride, machine.gpus_per_node));
}

double peer_rate(const Machine& machine, int ranks, int stride) {
  return link_rate(machine, ranks, stride, machine.gpus_per_node);
}

CallCost cost_of(const StepRecord::Distinct& call, const Machine& machine, const Ops& ops) {
  if (call.kind == CallKind::kCollective) return collective_cost(call, machine);
  CallCost cost{.resource = CallCost::Resource::kDevice, .fixed = machine.launch_seconds, .work = 0};
  if (call.kind != CallKind::kOperation) return cost;  // a step copies only a few numbers
  if (const auto* gemm = std::get_if<Gemm>(&call.arguments)) {
    cost.work = gemm_cost(*gemm, call.bytes, machine);
  } else if (const auto* head = std::get_if<LinearCrossEntropy>(&call.arguments)) {
    cost.work = head_cost(call, *head, machine, ops);
  } else if (const MeasuredOp* op = nearest_measured(machine, call.title, 0, 0, 0, call.bytes)) {
    cost.work = measured_seconds(*op, call.flops, call.bytes);
  } else {
    const double rate = machine.memory_rate * machine.efficiency.memory;
    cost.work = call.bytes / rate;
    if (const auto* forward = std::get_if<Attention>(&call.arguments)) {
      cost.work += attention_seconds(call.flops, forward->qkv.dtype(), forward->heads, machine);
    } else if (const auto* backward = std::get_if<AttentionBackward>(&call.arguments)) {
      cost.work += attention_seconds(call.flops, backward->qkv.dtype(), backward->heads, machine);
    }
  }
  return cost;
}

CostTerms terms_of(const StepRecord& record, const Machine& machine, const Ops& ops) {
  CostTerms terms;
  for (const StepRecord::Distinct& call : record.calls) {
    const double seconds = double(call.count) * cost_of(call, machine, ops).seconds();
    if (call.kind == CallKind::kCollective) {
      terms.collectives += seconds;
    } else if (std::holds_alternative<Gemm>(call.arguments) ||
               std::holds_alternative<LinearCrossEntropy>(call.arguments)) {
      terms.gemm += seconds;
    } else if (std::holds_alternative<Attention>(call.arguments) ||
               std::holds_alternative<AttentionBackward>(call.arguments)) {
      terms.attention += seconds;
    } else {
      terms.memory += seconds;
    }
  }
  return terms;
}

}  // namespace tokamak
