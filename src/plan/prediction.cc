#include "plan/prediction.h"

#include <algorithm>

#include "base/strings.h"
#include "model/flops.h"
#include "train/memory_check.h"

namespace tokamak {

namespace {

// A step of up to kFew + 1 micro-batches is simulated whole; a longer one by steps of kFew and kFew + 1.
constexpr int64_t kFew = 3;
constexpr int64_t kSteps = 2;  // to simulate; the second is like all later ones

struct Simulated {
  double seconds = 0, exposed = 0, flops = 0, exchanged = 0;
  CostTerms terms;
};

// a + more (b - a), value by value.
Simulated extrapolated(const Simulated& a, const Simulated& b, double more) {
  const auto line = [more](double from, double to) { return from + more * (to - from); };
  const CostTerms &s = a.terms, &t = b.terms;
  return {line(a.seconds, b.seconds),
          line(a.exposed, b.exposed),
          line(a.flops, b.flops),
          line(a.exchanged, b.exchanged),
          {line(s.gemm, t.gemm), line(s.attention, t.attention), line(s.memory, t.memory),
           line(s.collectives, t.collectives)}};
}

Simulated simulated(DryRun& run, BatchShape shape, int64_t sequences, const Machine& machine, std::string* trace) {
  shape.sequences_per_rank = sequences;
  const StepRecord record = run.record(shape);
  const SimulatedStep step =
      simulate(record, costs_of(record, machine, run.ops()),
               {.contention = machine.efficiency.contention, .beside = machine.efficiency.beside, .steps = kSteps});
  if (trace != nullptr) *trace = step.trace(record);
  return {step.seconds, step.exposed_communication, record.flops(), record.exchanged(),
          terms_of(record, machine, run.ops())};
}

}  // namespace

int64_t plannable_bytes(const DryRun& run, const Machine& machine) {
  return machine.plannable_bytes() - run.device().startup_bytes() - run.device().reserve_bytes() -
         run.mesh().reserve_bytes();
}

std::string accuracy_of(const Machine& machine) {
  if (!machine.measured.empty()) return "from calls that were measured there";
  if (machine.cpu) return "from rates that were not measured there";
  const auto percent = [](double share) { return significant(100 * share, 3) + " %"; };
  const PredictionError& e = kPublishedError;
  const std::string published = str("within ", percent(e.median), " of half of ", e.rows, " published runs, within ",
                                    percent(e.ninth_decile), " of nine in ten");
  if (machine.kernels_measured_on.empty()) return published;
  return str(published, "; kernels as measured on ", machine.kernels_measured_on, ", not as fitted on those runs");
}

Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated,
                   std::string* trace) {
  return predict(config, batch, ranks, stated, plannable_bytes(DryRun(config, batch, ranks), stated), trace);
}

Prediction predict(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& stated, int64_t bytes,
                   std::string* trace) {
  const Machine machine = stated.for_attention(config.runtime.attention);
  DryRun run(config, batch, ranks, bytes);
  const BatchShape& shape = run.shape();
  Simulated step;
  if (shape.micro_batches() <= kFew + 1) {
    step = simulated(run, shape, shape.sequences_per_rank, machine, trace);
  } else {
    // A smaller last micro-batch takes time in proportion to its sequences.
    const double more = double(shape.sequences_per_rank) / double(shape.micro_batch) - kFew;
    const Simulated few = simulated(run, shape, kFew * shape.micro_batch, machine, trace);
    const Simulated one_more = simulated(run, shape, (kFew + 1) * shape.micro_batch, machine, nullptr);
    step = extrapolated(few, one_more, more);
  }
  // Libraries take the bytes that a run may not plan with, apart from the free share.
  const int64_t peak_bytes = planned_bytes(run.memory(), run.device()) + (machine.plannable_bytes() - bytes);
  int64_t free_bytes = 0;
  if (__builtin_sub_overflow(machine.memory_bytes, peak_bytes, &free_bytes)) free_bytes = INT64_MAX;  // no limit given
  const auto tokens = double(shape.tokens_per_step());
  const double per_gpu = tokens / step.seconds / ranks, peak = machine.peak_flops(compute_dtype(config.precision));
  return {.shape = shape,
          .recompute = config.activation_checkpoint.mode,
          .kept = run.model().kept(),
          .parallelism = config.parallelism,
          .step_seconds = step.seconds,
          .exposed_communication_seconds = step.exposed,
          .tokens_per_second_per_gpu = per_gpu,
          .mfu_full = per_gpu * token_flops(config.model).full(shape.length) / peak,
          .mfu_causal = per_gpu * token_flops(config.model).causal(shape.length) / peak,
          .terms = step.terms,
          .flops = step.flops,
          .exchanged = step.exchanged,
          .peak_bytes_per_rank = peak_bytes,
          .available_bytes = machine.plannable_bytes(),
          .free_bytes = free_bytes,
          .pinned_bytes_per_rank = pinned_bytes(run.memory(), run.device()),
          .memory = run.memory().groups()};
}

}  // namespace tokamak
