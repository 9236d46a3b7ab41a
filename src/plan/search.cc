#include "plan/search.h"

#include <algorithm>

#include "base/strings.h"
#include "train/memory_check.h"

namespace tokamak {

namespace {

// The first takes the least memory.
std::vector<ParallelismOptions> shardings(const ParallelismOptions& configured, int ranks, const Machine& machine) {
  std::vector<int64_t> replicas = {1};
  if (ranks > machine.gpus_per_node && ranks % machine.gpus_per_node == 0) {
    replicas.push_back(ranks / machine.gpus_per_node);
  }
  std::vector<ParallelismOptions> all;
  for (const int64_t degree : replicas) {
    for (const int64_t stage : {3, 2, 1}) {
      if (ranks == 1 && stage != configured.zero_stage) continue;  // nothing is shared
      ParallelismOptions one = configured;
      one.zero_stage = stage;
      one.data_parallel_shard_degree = -1;
      one.data_parallel_replicate_degree = degree;
      if (stage < 3) one.keep_gathered = {};
      if (stage == 1) one.reduce = ReduceWhen::kAuto;
      all.push_back(one);
    }
  }
  return all;
}

// Those of one sharding and recompute mode.
void add_fitting(RunConfig tried, const GlobalBatch& batch, int ranks, const Machine& machine,
                 std::vector<Prediction>& fitting) {
  tried.training.micro_batch_size = {1};
  const int64_t bytes = plannable_bytes(DryRun(tried, batch, ranks), machine);
  for (int64_t micro_batch = 1; micro_batch <= batch.sequences_per_rank; ++micro_batch) {
    if (batch.sequences_per_rank % micro_batch != 0) continue;
    tried.training.micro_batch_size = {micro_batch};
    const DryRun sizes(tried, batch, ranks, bytes);
    if (planned_bytes(sizes.memory(), sizes.device()) > bytes) return;  // a larger one takes more
    fitting.push_back(predict(tried, batch, ranks, machine));
  }
}

}  // namespace

Choices search(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine) {
  Choices choices;
  const std::vector<ParallelismOptions> ways = shardings(config.parallelism, ranks, machine);
  for (size_t mode = 0; mode < enum_names(RecomputeMode{}).size(); ++mode) {
    RunConfig tried = config;
    tried.activation_checkpoint.mode = static_cast<RecomputeMode>(mode);
    const size_t before = choices.fitting.size();
    for (const ParallelismOptions& way : ways) {
      tried.parallelism = way;
      add_fitting(tried, batch, ranks, machine, choices.fitting);
    }
    if (choices.fitting.size() > before) continue;
    tried.parallelism = ways.front();
    tried.training.micro_batch_size = {1};
    choices.others.push_back(predict(tried, batch, ranks, machine));
  }
  std::stable_sort(choices.fitting.begin(), choices.fitting.end(),
                   [](const Prediction& a, const Prediction& b) { return a.step_seconds < b.step_seconds; });
  return choices;
}

std::string yaml_of(const Prediction& choice) {
  const ParallelismOptions& way = choice.parallelism;
  return str("parallelism:\n  zero_stage: ", way.zero_stage,
             "\n  data_parallel_replicate_degree: ", way.data_parallel_replicate_degree,
             "\ntraining:\n  micro_batch_size: ", choice.shape.micro_batch,
             "\nactivation_checkpoint:\n  mode: ", enum_names(RecomputeMode{})[static_cast<size_t>(choice.recompute)],
             "\n");
}

}  // namespace tokamak
