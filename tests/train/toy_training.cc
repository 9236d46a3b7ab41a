#include "train/toy_training.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/log.h"
#include "base/rng.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "monitor/history.h"
#include "monitor/jsonl.h"
#include "plan/prepare_run.h"
#include "support/ranks.h"
#include "tests/data/fixture.h"

namespace tokamak {

namespace {

constexpr int64_t kVocabulary = 61;

// Each token makes three others likely to follow, so that there is something to learn.
Documents learnable_documents(int64_t count, uint64_t seed) {
  const RandomStream random(seed, "documents");
  uint64_t drawn = 0;
  Documents documents;
  for (int64_t d = 0; d < count; ++d) {
    std::vector<int32_t> document;
    auto token = static_cast<int32_t>(3 + random.word(drawn++) % (kVocabulary - 3));
    for (int64_t i = 0; i < 5 + d % 37; ++i) {
      document.push_back(token);
      token = static_cast<int32_t>(3 + (token * 5 + random.word(drawn++) % 3) % (kVocabulary - 3));
    }
    document.push_back(kEos);
    documents.push_back(std::move(document));
  }
  return documents;
}

}  // namespace

ToyPlace::ToyPlace() {
  log::configure(0, 1, log::Level::kOff);
  write_dataset(file("train"), learnable_documents(120, 1), {.vocab_size = kVocabulary});
  write_dataset(file("validation"), learnable_documents(12, 2), {.vocab_size = kVocabulary});
}

RunConfig ToyPlace::config(const std::string& name, int ranks) const {
  RunConfig config;
  config.run = {.name = name, .output_dir = run(name), .seed = 7};
  config.model.hidden_size = 24;
  config.model.intermediate_size = 40;
  config.model.num_hidden_layers = 3;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.head_dim = 8;
  config.data.sequence_length = 16;
  config.data.sources = {{file("train")}};
  config.data.validation = {{file("validation")}};
  config.training.max_steps = 6;
  config.training.global_batch_tokens = 12 * 16;
  config.training.micro_batch_size.value = 12 / ranks;
  config.training.validation_sequences.value = 5;
  config.optimizer.lr = 2e-2;
  config.precision.compute = Precision::kF32;
  config.checkpoint.interval = TrainingLength::none();
  config.metrics.log_interval = 1;
  return config;
}

std::string ToyPlace::checkpoint(const std::string& name, int64_t step) const {
  return CheckpointStore(run(name) + "/checkpoints").path_of(step);
}

RunEnd train(int ranks, const RunConfig& incomplete, const ToyRunOptions& options) {
  const StopSignal stop;
  std::vector<RunEnd> ends(static_cast<size_t>(ranks), RunEnd::kDone);
  on_threads(ranks, [&](World& world) {
    RunConfig config = incomplete;
    collectively(world.comm(), [&] { complete_from_data(config); });
    std::optional<Sampler> sampler;
    if (!config.training.samples.prompts.empty()) sampler.emplace(config);
    Backend backend = options.backend();
    collectively(world.comm(), [&] { make_global_batch(config_at_step(config, 1), world.size(), options.readers); });
    OpenRun open(world, config, {.config_text = options.config_text(config)}, options.progress);
    open.records.or_record_end([&] { open.find_start(); });
    RunEnd& end = ends[static_cast<size_t>(world.rank())];
    do {
      if (end == RunEnd::kNextRow) open.next_row();
      const RunConfig row = open.row_config();
      PreparedRun prepared;
      open.records.or_record_end(
          [&] { prepared = prepare_run(world, backend, row, make_global_batch(row, world.size(), options.readers)); });
      Trainer trainer(world, stop, std::move(prepared), open,
                      {.evals = options.evals,
                       .sampler = sampler ? &*sampler : nullptr,
                       .check_changes = options.check_changes,
                       .stop_at_step = options.stop_at_step,
                       .trace_step = options.trace_step,
                       .stragglers = options.stragglers});
      end = options.run(world, trainer);
    } while (end == RunEnd::kNextRow);
  });
  TOKAMAK_CHECK(std::count(ends.begin(), ends.end(), ends[0]) == ranks, "ranks end differently");
  return ends[0];
}

SharedError error_of(int ranks, const RunConfig& config, const ToyRunOptions& options) {
  try {
    train(ranks, config, options);
  } catch (const SharedError& error) {
    return error;
  }
  FAIL("the run ended well");
  return SharedError(Kind::kBug, "");
}

int64_t planned_bytes_of(const RunConfig& config, const std::string& name, PlanFor use) {
  const auto comm = make_single_comm();
  Backend backend = toy_backend();
  const PlannedRun run = plan_run(config, make_global_batch(config, 1), *comm, backend, use, INT64_MAX);
  int64_t bytes = 0;
  for (const MemoryPlan::Entry& entry : run.engine->plan().entries()) {
    if (starts_with(entry.name, name)) bytes += entry.bytes();
  }
  return bytes;
}

std::vector<int64_t> steps_of(const ToyPlace& place, const std::string& name) {
  return CheckpointStore(place.run(name) + "/checkpoints").steps();
}

ToyState saved_state(const std::string& checkpoint) {
  CheckpointReader reader = CheckpointReader::open(checkpoint);
  const TrainingPoint& point = reader.manifest().point;
  ToyState state{point.state, point.data, {}};
  for (const std::string& kind : reader.manifest().kinds) {
    for (const SavedUnit& unit : reader.manifest().units) {
      for (const SavedParam& param : unit.params) {
        if (!reader.manifest().has(param, kind)) continue;
        std::vector<float>& values = state.tensors[{kind, param.name}];
        values.resize(static_cast<size_t>(param.count()));
        reader.read(kind, param.name, 0, values);
      }
    }
  }
  return state;
}

std::map<int64_t, double> records(const std::string& run, const std::string& key) {
  std::map<int64_t, double> values;
  for (const MetricRecord& record : read_history(run + "/metrics.jsonl")) {
    if (record.has(key)) values[record.step] = record.at(key);
  }
  return values;
}

double worst_difference(const std::map<int64_t, double>& a, const std::map<int64_t, double>& b) {
  TOKAMAK_CHECK(!a.empty() && a.size() == b.size(), a.size(), " steps and ", b.size());
  double worst = 0;
  for (const auto& [step, value] : a) worst = std::max(worst, std::abs(value - b.at(step)) / std::abs(value));
  return worst;
}

std::vector<std::string> events(const std::string& run) {
  std::vector<std::string> names;
  read_records(run + "/metrics.jsonl", [&](const MetricRecord& record) {
    if (record.event) names.push_back(record.event->name);
  });
  return names;
}

MetricRecord last_event(const std::string& run, const std::string& name) {
  MetricRecord last;
  read_records(run + "/metrics.jsonl", [&](const MetricRecord& record) {
    if (record.is(name)) last = record;
  });
  TOKAMAK_CHECK(last.event, run, " has no event ", name);
  return last;
}

}  // namespace tokamak
