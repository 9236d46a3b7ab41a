#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"

namespace tokamak {

namespace {

// Traffic of the head's logits besides the operands of its call, per logit: written by their GEMM, read twice by the loss,
// dlogits written and read by two GEMMs. Of logits that dlogits replace, half of the second read comes from the cache.
double head_bytes_per_logit(DType logits, DType act) {
  const auto size = static_cast<double>(size_of(logits)), gradient = static_cast<double>(size_of(act));
  return size + (logits == act ? 1.5 : 2) * size + 3 * gradient;
}

double gemm_seconds(double flops, double bytes, DType dtype, const Machine& machine) {
  return flops / (machine.peak_flops(dtype) * machine.efficiency.gemm) +
         bytes / (machine.memory_rate * machine.efficiency.memory);
}

// Of the measured calls of this title the nearest in shape, scaled by FLOPs, or by bytes where there are none.
const MeasuredOp* nearest_measured(const Machine& machine, const std::string& title, double m, double n, double k,
                                   double bytes) {
  const MeasuredOp* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  const auto apart = [](double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0; };
  for (const MeasuredOp& op : machine.measured) {
    const bool gemms = m > 0 && op.m > 0;  // another GEMM of about this shape will do
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

// Beside its GEMMs, attention takes an exponential of each score, which no wider head makes cheaper: as long as the GEMMs
// of kExponentials further columns. Efficiency::attention is that of heads of 128.
double attention_seconds(double flops, DType dtype, const HeadLayout& heads, const Machine& machine) {
  constexpr double kExponentials = 64, kUsual = 128;
  const double slower = (1 + kExponentials / static_cast<double>(heads.head_dim)) / (1 + kExponentials / kUsual);
  return slower * flops / (machine.peak_flops(dtype) * machine.efficiency.attention);
}

CallCost collective_cost(const StepRecord::Distinct& call, const Machine& machine) {
  if (call.ranks <= 1) return {};
  if (const MeasuredOp* op = nearest_measured(machine, call.name, 0, 0, 0, call.exchanged)) {
    return {.resource = CallCost::Resource::kLink, .fixed = 0, .work = measured_seconds(*op, 0, call.exchanged)};
  }
  return {.resource = CallCost::Resource::kLink,
          .fixed = machine.hop_seconds * static_cast<double>(call.ranks - 1),
          .work = call.exchanged / bus_rate(machine, call.ranks, call.apart)};
}

double gemm_cost(const Gemm& gemm, double bytes, const Machine& machine) {
  const RecordedGemm shape{.name = gemm.label, .call = gemm};
  const auto m = static_cast<double>(shape.m()), n = static_cast<double>(shape.n()), k = static_cast<double>(shape.k());
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
  const auto tokens = static_cast<double>(head.hidden.dim(0)), vocab = static_cast<double>(head.weight.dim(0));
  const DType act = head.hidden.dtype();
  const HeadChunk chunk = ops.head_chunk(head.hidden.dim(0), head.weight.dim(0), act);
  const double chunks = std::ceil(tokens / static_cast<double>(chunk.rows));  // each reads the matrix again
  const double bytes = call.bytes * chunks + head_bytes_per_logit(chunk.logits, act) * tokens * vocab;
  return gemm_seconds(call.flops, bytes, act, machine);
}

}  // namespace

double bus_rate(const Machine& machine, int ranks, int apart) {
  const double link = machine.link_rate;
  // A ring enters and leaves each node once on every port, so that a rank's bytes pass the node's ports together; where
  // the members of a group are apart, as many groups share the ports.
  const double network = machine.network_rate / std::min(apart, machine.gpus_per_node);
  const double rate = ranks * apart <= machine.gpus_per_node || machine.network_rate == 0
                          ? link
                          : (link > 0 && machine.gpus_per_node > 1 ? std::min(link, network) : network);
  return rate * machine.efficiency.bus;
}

CallCost cost_of(const StepRecord::Distinct& call, const Machine& machine, const Ops& ops) {
  if (call.kind == CallKind::kCollective) return collective_cost(call, machine);
  CallCost cost{.resource = CallCost::Resource::kDevice, .fixed = machine.launch_seconds, .work = 0};
  if (call.kind != CallKind::kOperation) return cost;  // copies of a step are a few numbers
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
    const double seconds = static_cast<double>(call.count) * cost_of(call, machine, ops).seconds();
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
