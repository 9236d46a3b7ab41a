// Rules of stages and warm-ups. Each stage must also be a valid run of its own.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/field_checks.h"
#include "config/units.h"
#include "config/validate.h"
#include "config/validate_stage.h"
#include "train/stages.h"

namespace tokamak {

namespace {

// Replaces the keys of the run by those of the stage that its values come from.
FieldError as_of_stage(FieldError error, const std::string& stage) {
  for (const StageKey& key : kStageKeys) {
    for (std::string* text : {&error.key, &error.what, &error.hint}) {
      for (size_t at = 0; (at = text->find(key.run, at)) != std::string::npos;) {
        const std::string replacement = str(stage, ".", key.stage);
        const char before = at == 0 ? ' ' : (*text)[at - 1];
        if (before == '.') {  // the end of another key
          at += 1;
          continue;
        }
        text->replace(at, std::strlen(key.run), replacement);
        at += replacement.size();
      }
    }
  }
  return error;
}

void check_warmup(const WarmupOptions& warmup, const std::string& key, int64_t full, const std::string& full_key,
                  FieldChecks& checks) {
  if (!checks.at_least(key + ".from", warmup.from, 0) || !checks.at_least(key + ".over", warmup.over, 0)) return;
  if (warmup.from == 0) {
    checks.require(warmup.over == 0, key + ".over", warmup.over, str("needs ", key, ".from"), "the first value");
    return;
  }
  const int64_t times = full / warmup.from;
  checks.require(full % warmup.from == 0 && std::has_single_bit(static_cast<uint64_t>(times)) && times > 1,
                 key + ".from", warmup.from, str("must be ", full_key, " (", full, ") divided by a power of two"));
  checks.require(warmup.over > 0, key + ".over", warmup.over, "must be at least 1", "the tokens that it takes");
}

// Rules between stages and warm-ups. Their own values are those of runs of one stage.
void check_rows(const RunConfig& config, FieldChecks& checks) {
  const StageOptions* first = config.stages.empty() ? nullptr : &config.stages[0];
  check_warmup(config.training.batch_warmup, "training.batch_warmup",
               first ? first->global_batch_tokens : config.training.global_batch_tokens,
               first ? "stages[0].global_batch_tokens" : "training.global_batch_tokens", checks);
  check_warmup(config.training.length_warmup, "training.length_warmup",
               first ? first->sequence_length : config.data.sequence_length,
               first ? "stages[0].sequence_length" : "data.sequence_length", checks);
  const bool has_one = !has_rows(config);
  checks.require(has_one || config.data.order != SampleOrder::kMegatron, "data.order", enum_name(config.data.order),
                 "has its samples in one order for the whole run, which stages and warm-ups change",
                 "order: shuffled or sequential");
  const bool warms_length = config.training.length_warmup.from > 0;
  checks.require(!warms_length || config.data.packing == Packing::kWindows, "data.packing",
                 enum_name(config.data.packing), "has rows of one length, which training.length_warmup changes");
  for (size_t i = 0; i < config.stages.size(); ++i) {
    const StageOptions& stage = config.stages[i];
    const std::string item = str("stages[", i, "]");
    checks.require(is_word(stage.name), item + ".name", stage.name,
                   "must be a word of letters, digits, _, -, . and /, of 64 characters at most", "for example anneal");
    for (size_t j = 0; j < i; ++j) {
      checks.require(stage.name != config.stages[j].name, item + ".name", stage.name,
                     str("is what stages[", j, "] is called, too"), "give them different names");
    }
    const bool has_length = stage.steps > 0 || stage.tokens > 0;
    checks.at_least(item + ".steps", stage.steps, 0);
    checks.at_least(item + ".tokens", stage.tokens, 0);
    checks.given(has_length, item + ".steps", "give steps or tokens of the stage");
    checks.require(stage.steps == 0 || stage.tokens == 0, item + ".tokens", stage.tokens,
                   str("contradicts ", item, ".steps (", stage.steps, ")"), "give one of the two");
    const bool follows_run = stage.schedule == StageSchedule::kRun;
    checks.require(!follows_run || stage.lr == config.optimizer.lr, item + ".lr", print_number(stage.lr),
                   str("differs from optimizer.lr, whose schedule the stage follows"), item + ".schedule: stage");
    checks.require(!follows_run || stage.lr_scheduler == config.lr_scheduler, item + ".lr_scheduler",
                   enum_name(stage.lr_scheduler.decay_type), "differs from lr_scheduler, which the stage follows",
                   item + ".schedule: stage");
    checks.require(config.data.packing == Packing::kWindows || stage.sequence_length == config.data.sequence_length,
                   item + ".sequence_length", stage.sequence_length,
                   str("differs from data.sequence_length (", config.data.sequence_length,
                       "), the length of the rows of data.packing: best_fit"));
  }
}

// Every length divides that of the windows which are shuffled.
void check_grid(const RunConfig& config, FieldChecks& checks) {
  const AutoInt grid = config.data.grid_length;
  const bool has_cells = config.data.packing == Packing::kWindows && config.data.order != SampleOrder::kMegatron;
  checks.require(has_cells || grid.is_auto(), "data.grid_length", grid.value,
                 "is the length of shuffled windows, which data.packing: best_fit and data.order: megatron lack",
                 "leave it out");
  if (!has_cells) return;
  checks.at_least("data.grid_length", grid.value, 0);
  int64_t longest = config.stages.empty() ? config.data.sequence_length : 0;
  for (const StageOptions& stage : config.stages) longest = std::max(longest, stage.sequence_length);
  const std::string of = grid.is_auto() ? "the longest stage's" : "data.grid_length";
  if (!grid.is_auto()) longest = grid.value;
  const auto check = [&](const std::string& key, int64_t length) {
    if (length < 1) return;  // reported already
    checks.require(longest % length == 0, key, length, str("must divide ", of, " ", longest));
  };
  for (size_t i = 0; i < config.stages.size(); ++i) {
    check(str("stages[", i, "].sequence_length"), config.stages[i].sequence_length);
  }
  if (config.stages.empty()) check("data.sequence_length", config.data.sequence_length);
}

void append(std::vector<FieldError>& to, const std::vector<FieldError>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The rows of a config whose stages and warm-ups are sound; none if they cannot be made. RunTable then says why.
std::vector<StageRow> rows_of(const RunConfig& config) {
  const auto is_sound = [](const StageOptions& stage) {
    return stage.global_batch_tokens > 0 && stage.sequence_length > 0;
  };
  if (!std::all_of(config.stages.begin(), config.stages.end(), is_sound)) return {};
  try {
    return stage_rows(config);
  } catch (const Error&) {
    return {};
  }
}

StepSpan span_of(const std::vector<StageRow>& rows, const std::function<bool(const StageRow&)>& has) {
  StepSpan span;
  for (const StageRow& row : rows) {
    if (!has(row)) continue;
    span.parts.push_back({double(row.options.steps), double(row.options.global_batch_tokens)});
    span.tokens += span.parts.back().steps * span.parts.back().batch;
  }
  return span;
}

StepSpan span_of_plain_run(const TrainingOptions& training) {
  const double steps = double(training.max_steps), batch = double(training.global_batch_tokens);
  return {.tokens = training.max_tokens > 0 ? double(training.max_tokens) : steps * batch, .parts = {{steps, batch}}};
}

bool is_any(const StageRow&) { return true; }

// The run with the keys of the stage as its own.
RunConfig stage_alone(const RunConfig& config, const StageOptions& stage) {
  RunConfig own = config_of_row(config, {.options = stage});
  if (own.training.max_steps == 0) own.training.max_steps = 1;  // of the tokens that the stage may have instead
  return own;
}

std::vector<FieldError> problems_of_stages(const RunConfig& config) {
  FieldChecks checks;
  const TrainingOptions& training = config.training;
  checks.require(training.max_steps == 0, "training.max_steps", training.max_steps,
                 "contradicts stages, which have steps or tokens of their own", "leave it out");
  checks.require(training.max_tokens == 0, "training.max_tokens", training.max_tokens,
                 "contradicts stages, which have steps or tokens of their own", "leave it out");
  check_rows(config, checks);
  check_grid(config, checks);
  std::vector<FieldError> found = checks.take();
  const std::vector<StageRow> rows = found.empty() ? rows_of(config) : std::vector<StageRow>();
  const StepSpan run = span_of(rows, is_any);
  for (size_t i = 0; i < config.stages.size(); ++i) {
    const StageOptions& stage = config.stages[i];
    const StepSpan own_span = span_of(rows, [&](const StageRow& row) { return row.stage == static_cast<int64_t>(i); });
    const StepSpan& scheduled = stage.schedule == StageSchedule::kRun ? run : own_span;
    for (const FieldError& error : problems_of_one_stage(stage_alone(config, stage), scheduled, run)) {
      FieldError own = as_of_stage(error, str("stages[", i, "]"));
      if (i == 0 || own.key != error.key) found.push_back(std::move(own));
    }
  }
  return found;
}

}  // namespace

std::vector<FieldError> find_problems(const RunConfig& config) {
  if (!config.stages.empty()) return problems_of_stages(config);
  FieldChecks checks;
  check_rows(config, checks);
  check_grid(config, checks);
  const std::vector<FieldError> rules = checks.take();
  const bool warms_up = rules.empty() && has_rows(config);
  const StepSpan run = warms_up ? span_of(rows_of(config), is_any) : span_of_plain_run(config.training);
  std::vector<FieldError> found = problems_of_one_stage(config, run, run);
  append(found, rules);
  return found;
}

}  // namespace tokamak
