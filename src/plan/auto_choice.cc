#include "plan/auto_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "comm/rank_zero.h"
#include "train/memory_check.h"

namespace tokamak {

namespace {

// The most layers to keep gathered. A rank that shards nothing gathers nothing.
int64_t most_gathered(const RunConfig& config, int ranks) {
  const bool shares = ranks > config.parallelism.data_parallel_replicate_degree;
  return shares && config.parallelism.keep_gathered.is_auto() ? config.model.num_hidden_layers : 0;
}

bool may_reduce_once(const RunConfig& config, const GlobalBatch& batch, int ranks, int64_t micro_batch) {
  const ParallelismOptions& way = config.parallelism;
  return way.reduce == ReduceWhen::kAuto && way.zero_stage > 1 && ranks > way.data_parallel_replicate_degree &&
         batch.sequences_per_rank > micro_batch;
}

double operation_seconds(DryRun& run, const Machine& machine) {
  BatchShape shape = run.shape();
  shape.sequences_per_rank = shape.micro_batch;
  const StepRecord record = run.record(shape);
  double seconds = 0;
  for (const StepRecord::Distinct& call : record.calls) {
    if (call.kind == CallKind::kCollective) continue;
    seconds += double(call.count) * cost_of(call, machine, run.ops()).seconds();
  }
  return seconds;
}

RunConfig with_bits_of(RunConfig config, const AutoChoice& choice) {
  config.training.micro_batch_size = {choice.micro_batch};
  if (config.parallelism.reduce == ReduceWhen::kAuto && config.parallelism.zero_stage > 1) {
    config.parallelism.reduce = choice.reduce_once ? ReduceWhen::kLastMicrobatch : ReduceWhen::kEveryMicrobatch;
  }
  return config;
}

bool better(const Candidate& a, const Candidate& b) {
  const double first = a.choice.predicted_seconds, second = b.choice.predicted_seconds;
  if (first != second) return first < second;
  return a.prediction.peak_bytes_per_rank < b.prediction.peak_bytes_per_rank;
}

}  // namespace

std::vector<int64_t> tried_micro_batches(const TrainingOptions& training, const GlobalBatch& batch) {
  if (!training.micro_batch_size.is_auto()) return {training.micro_batch_size.value};
  std::vector<int64_t> sizes;
  int64_t pieces = INT64_MAX;
  for (int64_t size = 1; size <= batch.sequences_per_rank; ++size) {
    const int64_t now = (batch.sequences_per_rank + size - 1) / size;
    if (batch.sequences_per_step % size != 0 || now == pieces) continue;
    sizes.push_back(size);
    pieces = now;
  }
  return sizes;
}

PerKeptTensor<KeepCost> keep_seconds(const RunConfig& config, const GlobalBatch& batch, int64_t micro_batch, int ranks,
                                     const Machine& stated) {
  const Machine machine = stated.for_attention(config.runtime.attention);
  // Layers of a kind cost the same, and the last one recomputes the same whatever is kept, so two of each suffice.
  RunConfig two = with_choice(config, {.micro_batch = micro_batch});
  two.training.micro_batch_size = {micro_batch};
  two.model.pattern = distinct_kinds(config.model);
  two.model.num_hidden_layers = 2 * std::ssize(two.model.pattern);
  two.parallelism.keep_gathered = AutoLimit::none();
  const size_t tensors = kept_tensors(config.model).size();
  const std::vector<int64_t> none(tensors, 0);
  two.activation_checkpoint = {.mode = RecomputeMode::kSelective, .kept_bytes = {}, .kept_layers = none};
  DryRun without(two, batch, ranks);
  auto costs = keep_costs(config.model, micro_batch * batch.length, batch.length, compute_dtype(config.precision),
                          without.ops().rows_behind_attention());
  const double nothing = operation_seconds(without, machine);
  const double times = double(batch.sequences_per_rank) / double(micro_batch);
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    std::vector<int64_t> one = none;
    one[tensor] = 1;
    two.activation_checkpoint.kept_layers = one;
    DryRun with(two, batch, ranks);
    costs[tensor].spared = times * (nothing - operation_seconds(with, machine));
  }
  return costs;
}

Candidates candidates(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
                      int64_t available) {
  const bool fills = leaves_choice(config) && available < INT64_MAX;
  const bool chooses_kept = config.activation_checkpoint.mode == RecomputeMode::kAuto;
  Candidates found;
  found.bytes = fills ? fillable_bytes(available, machine.cpu) : available;
  // add() and add_with_reduce() return false if the choice does not fit.
  const auto add = [&](AutoChoice choice, const KeepValues& values) {
    const DryRun run(with_choice(config, choice), batch, ranks, available);
    const int64_t left = found.bytes - planned_bytes(run.memory(), run.device());
    if (left < 0) return false;
    if (chooses_kept) choice.kept = choose_kept(values.costs, left);
    const Prediction prediction = predict(with_choice(config, choice), batch, ranks, machine, available);
    choice.predicted_seconds = prediction.step_seconds;
    found.fitting.push_back({choice, prediction});
    found.fitting.back().prediction.recompute = config.activation_checkpoint.mode;
    return true;
  };
  const auto add_with_reduce = [&](AutoChoice choice, const KeepValues& values) {
    const bool fits = add(choice, values);
    if (!may_reduce_once(config, batch, ranks, choice.micro_batch)) return fits;
    if (fits) {
      const Prediction& often = found.fitting.back().prediction;
      if (often.exposed_communication_seconds <= kWorthTrying * often.step_seconds) return true;
    }
    choice.reduce_once = true;
    return add(choice, values) || fits;
  };
  for (const int64_t size : tried_micro_batches(config.training, batch)) {
    KeepValues values{.micro_batch = size, .costs = {}};
    if (chooses_kept) values.costs = keep_seconds(config, batch, size, ranks, machine);
    const size_t before = found.fitting.size();
    for (int64_t gathered = 0; gathered <= most_gathered(config, ranks); ++gathered) {
      // More gathered layers take more memory.
      if (!add_with_reduce({.micro_batch = size, .keep_gathered = gathered}, values)) break;
    }
    if (found.fitting.size() == before) break;  // larger micro-batches take more memory, too
    if (chooses_kept) found.values.push_back(values);
  }
  std::stable_sort(found.fitting.begin(), found.fitting.end(), better);
  return found;
}

ExplainedChoice choose(const ChoiceInputs& inputs) {
  Machine machine = machine_of(inputs.config.runtime, inputs.device).with_memory(inputs.total);
  machine.gpus_per_node = inputs.ranks_per_node;
  RunConfig config = inputs.config;
  Candidates all = candidates(config, inputs.batch, inputs.ranks, machine, inputs.total);
  bool reduce_once = false;
  if (!all.fitting.empty() && inputs.available < inputs.total) {
    // Keys that change the bits keep their values.
    const AutoChoice fastest = all.fitting[0].choice;
    reduce_once = fastest.reduce_once;
    config = with_bits_of(config, fastest);
    machine.memory_bytes = inputs.available;
    all = candidates(config, inputs.batch, inputs.ranks, machine, inputs.available);
    for (Candidate& one : all.fitting) one.choice.reduce_once = reduce_once;
  }
  if (all.fitting.empty()) {
    ExplainedChoice least{least_choice(config), ""};
    least.reduce_once = reduce_once;
    least.why = str("the least there is: nothing fits into ", human_bytes(all.bytes));
    return least;
  }
  ExplainedChoice best{all.fitting[0].choice, ""};
  best.why = str("of ", all.fitting.size(), " choices that fit into ", human_bytes(all.bytes), " the fastest, ",
                 significant(best.predicted_seconds, 3), " s a step predicted by the rates of ", machine.name);
  const auto next = std::find_if(all.fitting.begin(), all.fitting.end(),
                                 [&](const Candidate& other) { return other.choice.micro_batch != best.micro_batch; });
  if (next != all.fitting.end()) {
    best.why += str("; micro-batches of ", next->choice.micro_batch, " would take ",
                    significant(next->choice.predicted_seconds, 3), " s");
  }
  return best;
}

ExplainedChoice choose_collectively(Comm& comm, const ChoiceInputs& inputs) {
  std::string why;
  const AutoChoice choice = value_of_rank_zero(comm, [&]() -> AutoChoice {
    ExplainedChoice chosen = choose(inputs);
    why = std::move(chosen.why);
    return static_cast<const AutoChoice&>(chosen);
  });
  return {choice, std::move(why)};
}

Machine machine_of(const RuntimeOptions& runtime, const std::string& device) {
  if (runtime.machine != "auto") return find_machine(runtime.machine);
  if (starts_with(device, "CPU")) return cpu_machine();
  if (const GpuRow* row = gpu_row_of(device)) return find_machine(row->name);
  fail(Kind::kConfig, str("the hardware table has no row for '", device, "', whose rates the auto keys need"),
       "runtime.machine: the row of a similar GPU, or the .json file that tokamak bench calibrate writes; or set "
       "activation_checkpoint.mode and parallelism.keep_gathered yourself");
}

}  // namespace tokamak
