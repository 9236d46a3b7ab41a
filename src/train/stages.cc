#include "train/stages.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tokamak {

namespace {

// The only stage of a run without stages.
StageOptions whole_run(const RunConfig& config) {
  return {.name = "",
          .steps = config.training.max_steps,
          .tokens = config.training.max_tokens,
          .sequence_length = config.data.sequence_length,
          .global_batch_tokens = config.training.global_batch_tokens,
          .micro_batch_size = config.training.micro_batch_size,
          .sources = config.data.sources,
          .document_masking = config.data.document_masking,
          .rope_theta = config.model.rope_theta,
          .rope_scaling = config.model.rope_scaling,
          .weight_decay = config.optimizer.weight_decay,
          .schedule = StageSchedule::kRun,
          .lr = config.optimizer.lr,
          .lr_scheduler = config.lr_scheduler,
          .activation_checkpoint = config.activation_checkpoint};
}

int64_t steps_of(int64_t tokens, int64_t batch) { return (tokens + batch - 1) / batch; }

int64_t doublings(const WarmupOptions& warmup, int64_t full) {
  return warmup.from == 0 ? 0 : std::bit_width(static_cast<uint64_t>(full / warmup.from)) - 1;
}

// The warmed-up value of the part of a stage that begins after `tokens` tokens.
int64_t warmed_up(const WarmupOptions& warmup, int64_t full, int64_t tokens) {
  const int64_t count = doublings(warmup, full);
  if (count == 0 || tokens >= warmup.over) return full;
  return warmup.from << static_cast<int64_t>(__int128{tokens} * count / warmup.over);
}

void add_borders(const WarmupOptions& warmup, int64_t full, std::vector<int64_t>& borders) {
  const int64_t count = doublings(warmup, full);
  for (int64_t i = 1; i <= count; ++i) {
    borders.push_back(static_cast<int64_t>((__int128{warmup.over} * i + count - 1) / count));
  }
}

// Cuts the first stage where a warmed-up value doubles. Every border is a whole step.
std::vector<StageOptions> cut_by_warmups(const StageOptions& stage, const TrainingOptions& training) {
  std::vector<int64_t> borders = {0};
  add_borders(training.batch_warmup, stage.global_batch_tokens, borders);
  add_borders(training.length_warmup, stage.sequence_length, borders);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<StageOptions> parts;
  int64_t steps = 0, tokens = 0;
  for (size_t i = 0; i < borders.size(); ++i) {
    StageOptions part = stage;
    if (borders.size() > 1) part.name = str(stage.name.empty() ? "run" : stage.name, ".", i);
    part.global_batch_tokens = warmed_up(training.batch_warmup, stage.global_batch_tokens, borders[i]);
    part.sequence_length = warmed_up(training.length_warmup, stage.sequence_length, borders[i]);
    const bool is_last = i + 1 == borders.size();
    if (!is_last) {
      part.steps = steps_of(borders[i + 1] - tokens, part.global_batch_tokens);
    } else {
      part.steps = stage.steps > 0 ? stage.steps - steps : steps_of(stage.tokens - tokens, part.global_batch_tokens);
    }
    part.tokens = 0;
    if (part.steps < 1 && !is_last) continue;  // a border within the step before it
    if (part.steps < 1) {
      fail(Kind::kConfig,
           str("training.", training.batch_warmup.from > 0 ? "batch_warmup" : "length_warmup", ".over leaves no steps ",
               "at full size: the ", stage.name.empty() ? "run" : "stage '" + stage.name + "'", " has ",
               stage.steps > 0 ? str(stage.steps, " steps") : str(stage.tokens, " tokens")),
           "a shorter warm-up, or a longer run");
    }
    steps += part.steps;
    tokens += part.steps * part.global_batch_tokens;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

bool has_rows(const RunConfig& config) {
  return !config.stages.empty() || config.training.batch_warmup.from > 0 || config.training.length_warmup.from > 0;
}

std::vector<StageRow> stage_rows(const RunConfig& config) {
  const std::vector<StageOptions> stages = config.stages.empty() ? std::vector{whole_run(config)} : config.stages;
  std::vector<StageRow> rows;
  const auto add = [&rows](const StageOptions& options, int64_t stage) {
    rows.push_back({options, stage, rows.empty() ? 1 : rows.back().last_step() + 1});
  };
  for (const StageOptions& part : cut_by_warmups(stages[0], config.training)) add(part, 0);
  for (size_t i = 1; i < stages.size(); ++i) {
    StageOptions stage = stages[i];
    if (stage.steps == 0) stage.steps = steps_of(stage.tokens, stage.global_batch_tokens);
    stage.tokens = 0;
    add(stage, static_cast<int64_t>(i));
  }
  return rows;
}

int64_t row_of_step(const std::vector<StageRow>& rows, int64_t step) {
  const auto row = std::find_if(rows.begin(), rows.end() - 1, [&](const StageRow& r) { return step <= r.last_step(); });
  return row - rows.begin();
}

RunConfig config_of_row(const RunConfig& config, const StageRow& row) {
  if (!has_rows(config)) return config;
  RunConfig own = config;
  const StageOptions& stage = row.options;
  own.stages.clear();
  own.training.batch_warmup = own.training.length_warmup = {};
  own.training.max_steps = stage.steps;
  own.training.max_tokens = 0;
  own.training.global_batch_tokens = stage.global_batch_tokens;
  own.training.micro_batch_size = stage.micro_batch_size;
  own.data.sequence_length = stage.sequence_length;
  own.data.sources = stage.sources;
  own.data.document_masking = stage.document_masking;
  own.model.rope_theta = stage.rope_theta;
  own.model.rope_scaling = stage.rope_scaling;
  own.optimizer.weight_decay = stage.weight_decay;
  if (stage.schedule == StageSchedule::kStage) {
    own.optimizer.lr = stage.lr;
    own.lr_scheduler = stage.lr_scheduler;
  }
  own.activation_checkpoint = stage.activation_checkpoint;
  return own;
}

RunConfig config_at_step(const RunConfig& config, int64_t step) {
  if (!has_rows(config)) return config;
  const std::vector<StageRow> rows = stage_rows(config);
  return config_of_row(config, rows[row_of_step(rows, step)]);
}

}  // namespace tokamak
