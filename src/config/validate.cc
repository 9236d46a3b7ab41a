#include "config/validate.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/field_checks.h"
#include "config/units.h"
#include "config/validate_stage.h"
#include "model/activation_names.h"
#include "monitor/chrome_trace.h"
#include "optim/optimizer.h"

namespace tokamak {

bool is_word(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || std::strchr("_-./", c) != nullptr);
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), fits);
}

namespace {

using Unit = TrainingLength::Unit;

void check_run(const RunOptions& run, FieldChecks& checks) {
  checks.given(!run.name.empty(), "run.name", "");
  checks.given(!run.output_dir.empty(), "run.output_dir", "");
  checks.at_least("run.seed", run.seed, 0);
}

void check_sources(const std::vector<SourceOptions>& sources, const std::string& key, FieldChecks& checks) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const std::string item = str(key, "[", i, "]");
    checks.given(!sources[i].path.empty(), item + ".path", "the directory of a tokenized data set");
    checks.positive(item + ".weight", sources[i].weight);
  }
}

void check_data(const DataOptions& data, const ModelConfig& model, FieldChecks& checks) {
  const bool length_ok = checks.given(data.sequence_length != 0, "data.sequence_length", "for example 2048") &&
                         checks.at_least("data.sequence_length", data.sequence_length, 1);
  // Dynamic scaling supports longer sequences.
  if (length_ok && model.max_position_embeddings > 0 && model.rope_scaling.rope_type != RopeType::kDynamic) {
    checks.require(data.sequence_length <= model.max_position_embeddings, "data.sequence_length", data.sequence_length,
                   str("is longer than model.max_position_embeddings (", model.max_position_embeddings, ")"),
                   "raise model.max_position_embeddings, or shorten the sequences");
  }
  checks.given(!data.sources.empty(), "data.sources", "for example [{path: my/data}]");
  check_sources(data.sources, "data.sources", checks);
  check_sources(data.validation, "data.validation", checks);
  checks.not_negative("data.max_epochs", data.max_epochs);
}

// The batch is split into sequences, and those into micro-batches.
void check_batch(const TrainingOptions& training, int64_t sequence_length, FieldChecks& checks) {
  const int64_t batch = training.global_batch_tokens;
  const std::string key = "training.global_batch_tokens";
  if (!checks.given(batch != 0, key, "tokens of one optimizer step over all ranks, for example 512Ki")) return;
  if (!checks.at_least(key, batch, 1) || sequence_length < 1) return;
  const int64_t below = batch / sequence_length * sequence_length;
  const std::string next = below > INT64_MAX - sequence_length ? "" : str(below + sequence_length);
  const std::string nearest_ones = below == 0 ? next : next.empty() ? str(below) : str(below, " and ", next);
  if (!checks.require(below == batch, key, batch,
                      str("must be a multiple of data.sequence_length (", sequence_length, ")"),
                      str("nearest: ", nearest_ones))) {
    return;
  }
  const int64_t sequences = batch / sequence_length;
  const int64_t micro = training.micro_batch_size.value;
  if (micro > 0) {
    checks.require(sequences % micro == 0, "training.micro_batch_size", micro,
                   str("must divide the ", sequences, " sequences of a step (training.global_batch_tokens ", batch,
                       " / data.sequence_length ", sequence_length, ")"));
  }
}

void check_evals(const TrainingOptions& training, FieldChecks& checks) {
  checks.at_least("training.evals_interval", training.evals_interval, 0);
  checks.require(training.evals_interval <= 0 || !training.evals.empty(), "training.evals_interval",
                 training.evals_interval, "needs training.evals", "give training.evals, or leave it out");
  for (size_t i = 0; i < training.evals.size(); ++i) {
    const EvalOptions& eval = training.evals[i];
    const std::string item = str("training.evals[", i, "]");
    checks.given(!eval.path.empty(), item + ".path", "the file of its questions or texts");
    checks.require(!generates_texts(eval.task), item + ".task", enum_name(eval.task),
                   "generates texts, which a run has no memory for", "use tokamak eval, on a checkpoint");
    checks.given(eval.task != EvalKind::kCustom || !eval.form.empty(), item + ".form", "the YAML file of its form");
    checks.require(eval.form.empty() || eval.task == EvalKind::kCustom, item + ".form", eval.form,
                   "is for the task custom", "leave it out");
    checks.at_least(item + ".limit", eval.limit, 0);
    checks.at_least(item + ".num_fewshot", eval.num_fewshot, 0);
    checks.require(eval.num_fewshot <= 0 || has_questions(eval.task), item + ".num_fewshot", eval.num_fewshot,
                   "is for tasks of questions", "leave it out");
    checks.require(eval.num_fewshot <= 0 || !eval.fewshot_path.empty(), item + ".num_fewshot", eval.num_fewshot,
                   str("needs ", item, ".fewshot_path, a file of examples"), "give one, or leave it out");
    checks.at_least(item + ".fewshot_seed", eval.fewshot_seed, 0);
    checks.require(!eval.by_position || eval.task == EvalKind::kShards, item + ".by_position",
                   print_bool(eval.by_position), "is for the task shards", "leave it out");
    checks.require(is_word(eval.display_name()), item + ".name", eval.display_name(),
                   "must be a word of letters, digits, _, -, . and /, of 64 characters at most",
                   "for example arc_easy");
    for (size_t j = 0; j < i; ++j) {
      checks.require(eval.display_name() != training.evals[j].display_name(), item + ".name", eval.display_name(),
                     str("is what training.evals[", j, "] is called, too"), "give them different names");
    }
  }
}

void check_samples(const SampleOptions& samples, FieldChecks& checks) {
  const std::string key = "training.samples";
  const bool has_prompts = !samples.prompts.empty();
  if (checks.at_least(key + ".interval", samples.interval, 0)) {
    checks.require(samples.interval > 0 || !has_prompts, key + ".interval", samples.interval,
                   str("must be at least 1 where there are training.samples.prompts (", samples.prompts.size(), ")"),
                   "for example 1000 steps; or leave the prompts out");
    checks.require(samples.interval == 0 || has_prompts, key + ".interval", samples.interval,
                   "needs training.samples.prompts", "give prompts, or leave it out");
  }
  checks.at_least(key + ".tokens", samples.tokens, 1);
  checks.not_negative(key + ".temperature", samples.temperature);
  checks.require(samples.top_p > 0 && samples.top_p <= 1, key + ".top_p", print_number(samples.top_p),
                 "must be above 0 and at most 1");
  checks.at_least(key + ".seed", samples.seed, 0);
}

void check_training(const TrainingOptions& training, const DataOptions& data, FieldChecks& checks) {
  checks.at_least("training.max_steps", training.max_steps, 0);
  checks.at_least("training.max_tokens", training.max_tokens, 0);
  if (training.max_steps == 0 && training.max_tokens == 0) {
    checks.given(false, "training.max_steps", "give training.max_steps or training.max_tokens, or stages");
  }
  checks.require(training.max_steps == 0 || training.max_tokens == 0, "training.max_tokens", training.max_tokens,
                 str("contradicts training.max_steps (", training.max_steps, ")"), "give one of the two");
  check_batch(training, data.sequence_length, checks);
  checks.at_least("training.micro_batch_size", training.micro_batch_size.value, 0);
  checks.not_negative("training.max_grad_norm", training.max_grad_norm);
  checks.not_negative("training.max_unit_grad_norm", training.max_unit_grad_norm);
  checks.not_negative("training.z_loss", training.z_loss);
  checks.at_least("training.validation_interval", training.validation_interval, 0);
  checks.at_least("training.validation_sequences", training.validation_sequences.value, 0);
  check_evals(training, checks);
  check_samples(training.samples, checks);
  checks.require(training.validation_interval <= 0 || !data.validation.empty(), "training.validation_interval",
                 training.validation_interval, "has no data to validate on: data.validation is empty",
                 "give data.validation, or set training.validation_interval to 0");
}

void check_optimizer(const OptimizerOptions& optimizer, FieldChecks& checks) {
  std::vector<std::string> names;
  for (const auto& [name, make] : optimizer_makers()) names.push_back(name);
  const auto check_name = [&](const std::string& key, const std::string& name) {
    checks.require(std::find(names.begin(), names.end(), name) != names.end(), key, str("'", name, "'"),
                   "must be " + join(names, " or "));
  };
  check_name("optimizer.name", optimizer.name);
  checks.positive("optimizer.lr", optimizer.lr);
  for (size_t i = 0; i < optimizer.betas.size(); ++i) {
    const double beta = optimizer.betas[i];
    checks.require(beta >= 0 && beta < 1, str("optimizer.betas[", i, "]"), print_number(beta),
                   "must be at least 0 and less than 1");
  }
  checks.positive("optimizer.eps", optimizer.eps);
  checks.not_negative("optimizer.weight_decay", optimizer.weight_decay);
  checks.require(optimizer.muon.momentum >= 0 && optimizer.muon.momentum < 1, "optimizer.muon.momentum",
                 print_number(optimizer.muon.momentum), "must be at least 0 and less than 1");
  if (checks.within("optimizer.muon.steps", optimizer.muon.steps, 1, 20)) {
    const bool fits = optimizer.muon.coefficients == NewtonSchulzCoefficients::kJordan || optimizer.muon.steps == 5;
    checks.require(fits, "optimizer.muon.steps", optimizer.muon.steps,
                   "contradicts optimizer.muon.coefficients polar_express, which has 5 steps", "coefficients: jordan");
  }
  for (size_t g = 0; g < optimizer.groups.size(); ++g) {
    const OptimizerGroup& group = optimizer.groups[g];
    const std::string key = str("optimizer.groups[", g, "]");
    checks.given(!group.match.empty(), key + ".match", "patterns of weights' names, for example [\"lm_head.weight\"]");
    if (!group.name.empty()) check_name(key + ".name", group.name);
    checks.not_negative(key + ".lr_scale", group.lr_scale);
  }
}

// The length's share of the span if both have, or can be converted to, the same unit; else NaN.
double share_of(const StepSpan& span, const TrainingLength& length) {
  if (length.unit == Unit::kNone) return 0;
  if (length.unit == Unit::kFraction) return length.value;
  if (span.parts.empty() || span.tokens <= 0) return NAN;
  if (length.unit == Unit::kSteps) return span.tokens_after(length.value) / span.tokens;
  return length.unit == Unit::kTokens ? length.value / span.tokens : NAN;
}

void check_averages(const std::vector<AverageOptions>& averages, const StepSpan& run, FieldChecks& checks) {
  for (size_t i = 0; i < averages.size(); ++i) {
    const AverageOptions& one = averages[i];
    const std::string item = str("averages[", i, "]");
    if (checks.given(!one.name.empty(), item + ".name", "for example ema")) {
      checks.require(is_word(one.name) && one.name.find('/') == std::string::npos, item + ".name", one.name,
                     "must be a word of letters, digits, _, - and ., of 64 characters at most", "for example ema");
    }
    for (size_t j = 0; j < i; ++j) {
      checks.require(one.name != averages[j].name, item + ".name", one.name,
                     str("is the name of averages[", j, "], too"), "give them different names");
    }
    const std::string half_life = str("'", print_training_length(one.half_life), "'");
    checks.require(!one.is_exponential() || (one.half_life.unit == Unit::kTokens && one.half_life.value > 0),
                   item + ".half_life", half_life, "must be tokens above 0, or none for the plain mean",
                   "for example 2B tokens");
    checks.at_least(item + ".every", one.every, 1);
    const std::string start = str("'", print_training_length(one.start), "'");
    checks.require(one.start.unit != Unit::kSeconds, item + ".start", start,
                   "must be in steps or tokens, or a share of the run", "for example 2000 steps, 1B tokens or 5%");
    checks.require(!(share_of(run, one.start) > 1), item + ".start", start, "is after the end of the run");
  }
}

void check_cycles(const ScheduleOptions& schedule, FieldChecks& checks) {
  const bool restarts = schedule.decay_type == DecayType::kRestarts;
  const std::string length = print_training_length(schedule.cycle_length);
  checks.require(restarts || schedule.cycle_length == TrainingLength::none(), "lr_scheduler.cycle_length", length,
                 str("is for lr_scheduler.decay_type: restarts, and that is ", enum_name(schedule.decay_type)));
  checks.require(!restarts || schedule.cycle_length.value > 0, "lr_scheduler.cycle_length", length,
                 "must be above 0 for lr_scheduler.decay_type: restarts", "for example 10000 steps, 10B tokens or 10%");
  const double growth = schedule.cycle_length_factor, gain = schedule.cycle_peak_factor;
  checks.require(growth >= 1 && std::isfinite(growth), "lr_scheduler.cycle_length_factor", print_number(growth),
                 "must be at least 1");
  checks.require(gain > 0 && gain <= 1, "lr_scheduler.cycle_peak_factor", print_number(gain),
                 "must be above 0 and at most 1");
}

// The tail begins after the warm-up, and before the end of the run.
void check_tail(const ScheduleOptions& schedule, double warmup_share, const StepSpan& scheduled, FieldChecks& checks) {
  const std::string warmup = str("lr_scheduler.warmup (", print_training_length(schedule.warmup), ")");
  const double start = share_of(scheduled, schedule.decay_start);
  const std::string shown = str("'", print_training_length(schedule.decay_start), "'");
  if (schedule.decay_start != TrainingLength::none()) {
    checks.require(!(start < warmup_share), "lr_scheduler.decay_start", shown, "is before the end of " + warmup);
    checks.require(!(start >= 1), "lr_scheduler.decay_start", shown,
                   str("leaves no steps for the tail: it is at ", significant(start * 100, 4), "% of the run"));
  } else if (schedule.decay_type == DecayType::kWsd) {
    checks.require(warmup_share + schedule.decay_ratio <= 1, "lr_scheduler.decay_ratio",
                   print_number(schedule.decay_ratio), str("and ", warmup, " together exceed the run"));
  }
}

void check_schedule(const ScheduleOptions& schedule, const StepSpan& scheduled, FieldChecks& checks) {
  const auto check_unit = [&](const char* key, const TrainingLength& length, const char* example) {
    checks.require(length.unit != Unit::kSeconds, key, str("'", print_training_length(length), "'"),
                   "must be in steps or tokens, or a share of the run", example);
  };
  check_unit("lr_scheduler.warmup", schedule.warmup, "for example 2000 steps, 1B tokens or 5%");
  check_unit("lr_scheduler.decay_start", schedule.decay_start, "for example 90000 steps, 900B tokens or 90%");
  check_unit("lr_scheduler.cycle_length", schedule.cycle_length, "for example 10000 steps, 10B tokens or 10%");
  const bool ratio_ok = checks.fraction("lr_scheduler.decay_ratio", schedule.decay_ratio);
  checks.fraction("lr_scheduler.min_lr_factor", schedule.min_lr_factor);
  checks.require(
      schedule.has_tail() || schedule.decay_type == DecayType::kConstant || schedule.decay_shape == DecayShape::kLinear,
      "lr_scheduler.decay_shape", enum_name(schedule.decay_shape),
      str("is the shape of a tail, which lr_scheduler.decay_type: ", enum_name(schedule.decay_type),
          " has only with lr_scheduler.decay_start"),
      "give lr_scheduler.decay_start, or leave decay_shape out");
  checks.require(!schedule.has_tail() || schedule.decay_shape != DecayShape::kExponential || schedule.min_lr_factor > 0,
                 "lr_scheduler.min_lr_factor", print_number(schedule.min_lr_factor),
                 "must be above 0 for lr_scheduler.decay_shape: exponential, which never reaches 0");
  check_cycles(schedule, checks);
  const double share = share_of(scheduled, schedule.warmup);
  if (!ratio_ok || std::isnan(share)) return;
  const bool fits = checks.require(share >= 0 && share <= 1, "lr_scheduler.warmup",
                                   str("'", print_training_length(schedule.warmup), "'"),
                                   str("is longer than the run (", significant(share * 100, 4), "% of it)"));
  if (fits) check_tail(schedule, share, scheduled, checks);
}

void check_parallelism(const ParallelismOptions& parallelism, const ModelConfig& model, FieldChecks& checks) {
  const int64_t stage = parallelism.zero_stage;
  checks.within("parallelism.zero_stage", stage, 1, 3);
  checks.at_least("parallelism.data_parallel_replicate_degree", parallelism.data_parallel_replicate_degree, 1);
  checks.require(stage != 1 || parallelism.reduce != ReduceWhen::kEveryMicrobatch, "parallelism.reduce",
                 enum_name(parallelism.reduce),
                 "contradicts parallelism.zero_stage 1, which keeps whole gradients and reduces them once a step",
                 "reduce: last_microbatch, or zero_stage: 2");
  if (parallelism.keep_gathered.is_none()) return;
  const int64_t kept = parallelism.keep_gathered.value;
  checks.require(stage == 3, "parallelism.keep_gathered", print_auto_limit(parallelism.keep_gathered),
                 str("contradicts parallelism.zero_stage ", stage, ", which keeps every layer gathered"),
                 "leave one of the two out");
  checks.require(kept <= model.num_hidden_layers, "parallelism.keep_gathered", kept,
                 str("is more than model.num_hidden_layers (", model.num_hidden_layers, ")"));
}

void check_activation_checkpoint(const ActivationCheckpointOptions& options, FieldChecks& checks) {
  checks.require(options.mode == RecomputeMode::kSelective || options.kept_bytes.is_auto(),
                 "activation_checkpoint.kept_bytes", print_auto_limit(options.kept_bytes),
                 str("is for activation_checkpoint.mode: selective, and the mode is ", enum_name(options.mode)),
                 "set activation_checkpoint.mode to selective, or leave kept_bytes out");
}

void check_checkpoint(const CheckpointOptions& checkpoint, FieldChecks& checks) {
  const TrainingLength& interval = checkpoint.interval;
  checks.require(interval.unit != Unit::kFraction, "checkpoint.interval",
                 str("'", print_training_length(interval), "'"), "must be in steps, tokens or time",
                 "for example 1000 steps, 1B tokens or 30min");
  checks.at_least("checkpoint.keep_latest", checkpoint.keep_latest, 0);
  checks.given(!checkpoint.load.empty(), "checkpoint.load", "auto, none or the path of a checkpoint");
}

void check_spikes(const RunConfig& config, FieldChecks& checks) {
  const SpikeOptions& spike = config.resilience.spike;
  checks.at_least("resilience.spike.window", spike.window, 8);
  checks.positive("resilience.spike.threshold", spike.threshold);
  checks.at_least("resilience.spike.consecutive", spike.consecutive, 1);
  checks.at_least("resilience.spike.skip_samples", spike.skip_samples.value, 0);
  checks.at_least("resilience.spike.max_rollbacks", spike.max_rollbacks, 1);
  checks.require(spike.action != SpikeAction::kRollback || config.data.order != SampleOrder::kMegatron,
                 "resilience.spike.action", "rollback",
                 "leaves out samples, and data.order megatron counts them in advance",
                 "data.order: shuffled or sequential; or action: skip");
}

void check_activations(const RunConfig& config, FieldChecks& checks) {
  const ActivationOptions& options = config.metrics.activation_statistics;
  checks.at_least("metrics.activation_statistics.interval", options.interval, 0);
  if (!config.model.problems().empty()) return;
  for (const std::string& pattern : options.match) {
    checks.require(!matching_activations(config.model, {pattern}).empty(), "metrics.activation_statistics.match",
                   str("'", pattern, "'"), "matches no activation",
                   "for example layers.*.attention_logits, or * for all");
  }
}

void check_watchdog(const ResilienceOptions& resilience, FieldChecks& checks) {
  if (!resilience.watchdog_on()) return;
  const Duration least = resilience.watchdog_min, most = resilience.watchdog_max;
  const std::string value = str("'", print_duration(least), "'");
  checks.require(least.seconds >= 1, "resilience.watchdog_min", value, "must be at least 1s",
                 "resilience.watchdog_max=none turns the watchdog off");
  checks.require(least.seconds <= most.seconds, "resilience.watchdog_min", value,
                 str("is more than resilience.watchdog_max (", print_duration(most), ")"));
}

}  // namespace

double StepSpan::tokens_after(double steps) const {
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double taken = i + 1 < parts.size() ? std::min(steps, parts[i].steps) : steps;
    sum += taken * parts[i].batch;
    steps -= taken;
  }
  return sum;
}

std::vector<FieldError> problems_of_one_stage(const RunConfig& config, const StepSpan& scheduled, const StepSpan& run) {
  FieldChecks checks;
  check_run(config.run, checks);
  check_data(config.data, config.model, checks);
  check_training(config.training, config.data, checks);
  check_optimizer(config.optimizer, checks);
  check_schedule(config.lr_scheduler, scheduled, checks);
  check_averages(config.averages, run, checks);
  check_parallelism(config.parallelism, config.model, checks);
  check_activation_checkpoint(config.activation_checkpoint, checks);
  check_checkpoint(config.checkpoint, checks);
  checks.at_least("metrics.log_interval", config.metrics.log_interval, 1);
  checks.at_least("metrics.tensor_statistics", config.metrics.tensor_statistics, 0);
  check_activations(config, checks);
  checks.require(parse_traced_steps(config.metrics.trace).has_value(), "metrics.trace",
                 str("'", config.metrics.trace, "'"), "names no steps", "write 10-12, or 10 for one step");
  checks.at_least("resilience.max_bad_steps", config.resilience.max_bad_steps, 1);
  checks.at_least("resilience.recompute_interval", config.resilience.recompute_interval, 0);
  check_spikes(config, checks);
  check_watchdog(config.resilience, checks);
  checks.at_least("runtime.threads_per_rank", config.runtime.threads_per_rank.value, 0);
  checks.at_least("runtime.nccl_max_ctas", config.runtime.nccl_max_ctas, 0);
  checks.at_least("runtime.nccl_warm_up", config.runtime.nccl_warm_up, 0);

  std::vector<FieldError> found = config.model.problems();
  const std::vector<FieldError> others = checks.take();
  found.insert(found.end(), others.begin(), others.end());
  return found;
}

}  // namespace tokamak
