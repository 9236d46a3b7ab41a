#include "plan/search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "base/strings.h"
#include "plan/auto_choice.h"

namespace tokamak {

namespace {

// Replicate degrees: one, and those that give each copy the ranks of 1, 2, 4, ... nodes. More copies take more memory;
// a ring of fewer ranks has less latency.
std::vector<int64_t> copies(int ranks, const Machine& machine) {
  std::vector<int64_t> all = {1};
  for (int64_t group = machine.gpus_per_node; group < ranks; group *= 2) {
    if (ranks % group == 0) all.push_back(ranks / group);
  }
  return all;
}

// The first element takes the least memory.
std::vector<ParallelismOptions> shardings(const ParallelismOptions& configured, int ranks, const Machine& machine) {
  std::vector<ParallelismOptions> all;
  for (const int64_t degree : copies(ranks, machine)) {
    for (const int64_t stage : {3, 2, 1}) {
      if (ranks == 1 && stage != configured.zero_stage) continue;  // one rank shards nothing
      ParallelismOptions one = configured;
      one.zero_stage = stage;
      one.data_parallel_replicate_degree = degree;
      if (stage < 3) one.keep_gathered = AutoLimit::none();
      if (stage == 1) one.reduce = ReduceWhen::kAuto;
      all.push_back(one);
    }
  }
  return all;
}

bool faster(const Prediction& a, const Prediction& b) { return a.step_seconds < b.step_seconds; }

// Whether weights are gathered, so that units of a projection make a difference.
bool shares_weights(const ParallelismOptions& way, int ranks) {
  return way.zero_stage == 3 && ranks > way.data_parallel_replicate_degree;
}

// Adds the fastest choice of each micro-batch, for one sharding and recompute mode.
void add_fitting(const RunConfig& tried, const GlobalBatch& batch, int ranks, const Machine& machine,
                 std::vector<Prediction>& fitting) {
  const DryRun least(with_choice(tried, least_choice(tried)), batch, ranks);
  std::set<int64_t> seen;
  for (const Candidate& one : candidates(tried, batch, ranks, machine, plannable_bytes(least, machine)).fitting) {
    if (seen.insert(one.choice.micro_batch).second) fitting.push_back(one.prediction);
  }
}

}  // namespace

Choices search(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
               const SearchProgress& progress) {
  Choices choices;
  const std::vector<ParallelismOptions> ways = shardings(config.parallelism, ranks, machine);
  const size_t modes = enum_names(RecomputeMode{}).size();
  for (size_t mode = 0; mode < modes; ++mode) {
    RunConfig tried = config;
    tried.training.micro_batch_size = {};
    tried.activation_checkpoint.mode = static_cast<RecomputeMode>(mode);
    tried.activation_checkpoint.kept_layers.clear();
    const size_t before = choices.fitting.size();
    // By stage: the exposed share of the fastest step with one copy. More copies, up to one per node, take more memory
    // and expose less communication.
    std::map<int64_t, double> exposed;
    for (size_t i = 0; i < ways.size(); ++i) {
      const ParallelismOptions& way = ways[i];
      if (progress) progress(ways.size() * mode + i, ways.size() * modes);
      const int64_t degree = way.data_parallel_replicate_degree;
      if (degree > 1 && degree < ranks / machine.gpus_per_node && !(exposed[way.zero_stage] > kWorthTrying)) continue;
      tried.parallelism = way;
      if (tried.activation_checkpoint.mode == RecomputeMode::kAuto && way.zero_stage == 3) {
        tried.parallelism.keep_gathered = {};
      }
      const size_t found = choices.fitting.size();
      add_fitting(tried, batch, ranks, machine, choices.fitting);
      if (degree == 1 && choices.fitting.size() > found) {
        const Prediction& fastest = *std::min_element(choices.fitting.begin() + found, choices.fitting.end(), faster);
        exposed[way.zero_stage] = fastest.exposed_communication_seconds / fastest.step_seconds;
      }
      if (choices.fitting.size() > found || !shares_weights(way, ranks)) continue;
      tried.parallelism.unit = UnitSize::kProjection;  // less memory, more and smaller messages
      add_fitting(tried, batch, ranks, machine, choices.fitting);
    }
    if (choices.fitting.size() > before) continue;
    tried.parallelism = ways.front();
    const auto smallest = [&] { return predict(with_choice(tried, least_choice(tried)), batch, ranks, machine); };
    Prediction least = smallest();
    if (shares_weights(ways.front(), ranks)) {
      tried.parallelism.unit = UnitSize::kProjection;
      const Prediction parts = smallest();
      if (parts.peak_bytes_per_rank < least.peak_bytes_per_rank) least = parts;
    }
    least.recompute = static_cast<RecomputeMode>(mode);
    choices.others.push_back(std::move(least));
  }
  std::stable_sort(choices.fitting.begin(), choices.fitting.end(), faster);
  return choices;
}

std::string yaml_of(const Prediction& choice, int64_t global_batch_tokens) {
  const ParallelismOptions& way = choice.parallelism;
  return str("parallelism:\n  zero_stage: ", way.zero_stage,
             "\n  data_parallel_replicate_degree: ", way.data_parallel_replicate_degree,
             way.unit == UnitSize::kLayer ? "" : "\n  unit: projection",
             way.reduce == ReduceWhen::kLastMicrobatch ? "\n  reduce: last_microbatch" : "",
             way.keep_gathered.is_none() ? "" : str("\n  keep_gathered: ", way.keep_gathered.value),
             "\ntraining:", global_batch_tokens > 0 ? str("\n  global_batch_tokens: ", global_batch_tokens) : "",
             "\n  micro_batch_size: ", choice.shape.micro_batch,
             "\nactivation_checkpoint:\n  mode: ", enum_name(choice.recompute), "\n");
}

}  // namespace tokamak
