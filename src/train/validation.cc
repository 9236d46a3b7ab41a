#include "train/validation.h"

#include <algorithm>
#include <vector>

#include "data/loader.h"
#include "train/step.h"

namespace tokamak {

namespace {

constexpr double kShareOfTraining = 0.05;
constexpr double kCostOfForward = 1.0 / 3;  // of a training step's time
constexpr int64_t kFewestSequences = 64;    // with auto

}  // namespace

int64_t all_sequences(const SampleSource& source) {
  int64_t sum = 0;
  for (int64_t s = 0; s < source.sources(); ++s) sum += source.windows(s);
  return sum;
}

int64_t validation_sequences(const RunConfig& config, const GlobalBatch& batch, const SampleSource& validation) {
  const TrainingOptions& options = config.training;
  const int64_t all = all_sequences(validation);
  if (!options.validation_sequences.is_auto()) return std::min(all, options.validation_sequences.value);
  const int64_t interval = options.validation_interval;
  const int64_t steps = interval > 0 ? std::min(interval, batch.total_steps) : batch.total_steps;
  const double trained = static_cast<double>(steps) * static_cast<double>(batch.sequences_per_step);
  const double cost = kCostOfForward * double(1 + config.averages.size());
  const auto paid = static_cast<int64_t>(std::min(kShareOfTraining / cost * trained, 1e15));
  return std::min(all, std::max(paid, kFewestSequences));
}

double mean_loss(Engine& engine, const SampleSource& source, const HeldOut& options,
                 const std::function<void()>& between) {
  Comm& data = engine.mesh().data();
  Stream& compute = engine.compute();
  // Collectives need as many micro-batches on every rank, so the last sequences may be fillers that do not count.
  const int64_t per_rank = (options.sequences + data.size() - 1) / data.size();
  Loader loader(source, {.rank = data.rank(),
                         .ranks = data.size(),
                         .micro_batch = std::min(options.micro_batch, per_rank),
                         .samples_per_step = per_rank * data.size(),
                         .document_masking = options.document_masking});
  engine.backend().ops->fill(compute, {.x = engine.sums(), .value = 0});
  for (int64_t m = 0; m < loader.micro_batches_per_step(); ++m) {
    between();
    const MicroBatch& batch = loader.next();
    const int64_t counted = std::clamp(options.sequences - batch.first_sample, int64_t{0}, batch.sequences);
    std::vector<int32_t> targets = batch.targets;
    std::fill(targets.begin() + counted * batch.length, targets.end(), -1);
    TokenBatch view = view_of(batch);
    view.targets = targets;
    engine.model().evaluate(compute, view, engine.sums());
  }
  data.all_reduce(compute, engine.sums());
  double sums[kStepSums] = {};
  engine.backend().device->copy_to_host(compute, engine.sums(), sums);
  compute.synchronize();
  return sums[kSumLoss] / sums[kSumTargets];
}

}  // namespace tokamak
