#include "cli/decay_run.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/run_files.h"
#include "checkpoint/store.h"
#include "config/load.h"
#include "config/units.h"
#include "config/validate.h"
#include "train/run_table.h"

namespace tokamak::cli {

namespace {

constexpr const char* kConstantHint =
    "a decay starts from a constant learning rate, lr_scheduler.decay_type constant or wsd, after the warm-up";

bool is_constant(const ScheduleOptions& schedule) {
  return schedule.decay_type == DecayType::kConstant || schedule.decay_type == DecayType::kWsd;
}

std::string directory_of(const RunConfig& config, int64_t step) { return str(config.run.output_dir, "-decay-", step); }

Schedule schedule_of(const RunConfig& config) { return RunTable(config).schedule(0); }

// The checkpoint's step. Its own config says whether the learning rate was constant there.
int64_t step_to_decay_from(const std::string& directory) {
  if (!exists(directory + "/" + kManifestName)) {
    fail(Kind::kCheckpoint, str("--decay-from: ", directory, " is no checkpoint: it has no ", kManifestName),
         "give the directory of one step, for example runs/mine/checkpoints/step-00001000");
  }
  const CheckpointManifest manifest = CheckpointReader::open_manifest(directory).manifest();
  const int64_t step = manifest.point.state.step;
  const auto refuse = [&](const auto&... why) {
    fail(Kind::kConfig, str("--decay-from: ", directory, ", of step ", step, ", ", why...), kConstantHint);
  };
  if (step == 0) refuse("has no steps behind it");
  const RunConfig trunk = parse_saved_config(manifest.point.config, directory + "/" + kManifestName);
  if (!trunk.stages.empty()) refuse("belongs to a run of stages, each of which may have a schedule of its own");
  if (const int64_t grown = RunTable(trunk).rows().back().first_step - 1; step < grown)
    refuse("is within training.batch_warmup or length_warmup, which end at step ", grown);
  const ScheduleOptions& options = trunk.lr_scheduler;
  if (!is_constant(options)) refuse("has lr_scheduler.decay_type ", enum_name(options.decay_type));
  const Schedule schedule = schedule_of(trunk);
  if (step < schedule.warmup_steps())
    refuse("is within the ", schedule.warmup_steps(), " steps of lr_scheduler.warmup");
  if (step > schedule.tail_start()) {
    const std::string reason = options.decay_start == TrainingLength::none()
                                   ? str("lr_scheduler.decay_ratio ", print_number(options.decay_ratio))
                                   : str("lr_scheduler.decay_start ", print_training_length(options.decay_start));
    refuse("has begun to decay at step ", schedule.tail_start(), " (", reason, ")");
  }
  return step;
}

// The step of a decay run that has begun.
std::optional<int64_t> step_begun_from(const RunConfig& config, const std::string& directory) {
  const auto step = parse_step_name(std::filesystem::path(directory).filename().string());
  const bool has_begun = step && exists(run_files::at(directory_of(config, *step), run_files::kConfig));
  return has_begun ? step : std::nullopt;
}

int64_t steps_of(const TrainingLength& length, int64_t done, int64_t tokens_per_step) {
  constexpr double kRounding = 1e-12;  // 7% of 100 is 7.000000000000001 in binary, and is meant as 7
  double steps = length.value;
  if (length.unit == TrainingLength::Unit::kTokens) steps /= double(tokens_per_step);
  if (length.unit == TrainingLength::Unit::kFraction) steps *= double(done) * (1 - kRounding);
  const bool has_unit = length.unit != TrainingLength::Unit::kSeconds;
  if (!has_unit || !(steps > 0) || steps > 1e15) {
    fail(Kind::kConfig, str("--decay ", print_training_length(length), " is no length of a decay"),
         "for example 10% of the steps before it, 2000 steps or 10B tokens");
  }
  return static_cast<int64_t>(std::ceil(steps));
}

// A run that has begun goes on from the checkpoint and with the length that it began with.
void expect_same_decay(const RunConfig& config, const TrainingLength& length) {
  const std::string path = run_files::at(config.run.output_dir, run_files::kConfig);
  if (!exists(path)) return;
  const RunConfig begun = parse_saved_config(read_text(path, Kind::kConfig), path);
  const auto place_of = [](const std::string& name) { return std::filesystem::weakly_canonical(name); };
  if (place_of(begun.checkpoint.load) != place_of(config.checkpoint.load)) {
    fail(Kind::kConfig, str(path, " decays from ", begun.checkpoint.load, ", not from ", config.checkpoint.load),
         "give another run.output_dir for a decay from another checkpoint");
  }
  if (begun.training.max_steps == config.training.max_steps) return;
  fail(Kind::kConfig,
       str(path, " has training.max_steps ", begun.training.max_steps, ", but --decay ", print_training_length(length),
           " ends at step ", config.training.max_steps),
       "give the --decay that the run began with, or another run.output_dir for another decay");
}

}  // namespace

RunConfig load_decay_run(const std::string& path, const std::vector<std::string>& overrides,
                         const DecayOptions& decay) {
  RunConfig config = load_config(path, overrides);
  if (!config.stages.empty()) {
    fail_with_places({{"stages", "--decay-from is for a run without stages", "write the decay as a stage"}}, path,
                     overrides);
  }
  if (!is_constant(config.lr_scheduler)) {
    const std::string key = "lr_scheduler.decay_type";
    fail_with_places({{key,
                       str("key '", key, "' (value ", enum_name(config.lr_scheduler.decay_type),
                           ") has no constant learning rate for --decay-from"),
                       kConstantHint}},
                     path, overrides);
  }
  std::string directory = decay.from;
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  const std::optional<int64_t> begun = step_begun_from(config, directory);
  const int64_t step = begun ? *begun : step_to_decay_from(directory);
  config.lr_scheduler.warmup = TrainingLength::steps(double(schedule_of(config).warmup_steps()));
  config.lr_scheduler.decay_start = TrainingLength::steps(double(step));
  config.training.max_steps = step + steps_of(decay.length, step, config.training.global_batch_tokens);
  config.training.max_tokens = 0;
  config.checkpoint.load = directory;
  config.run.output_dir = directory_of(config, step);
  config.run.name += str("-decay-", step);
  fail_with_places(find_problems(config), path, overrides);
  expect_same_decay(config, decay.length);
  return config;
}

}  // namespace tokamak::cli
