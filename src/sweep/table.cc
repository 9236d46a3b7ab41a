#include "sweep/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "checkpoint/lock.h"
#include "config/load.h"
#include "formats/json.h"
#include "model/flops.h"
#include "monitor/run_status.h"
#include "report/curves.h"
#include "report/run_report.h"
#include "train/stages.h"

namespace tokamak {

namespace {

constexpr const char* kLoss = "validation/loss";
constexpr int64_t kLast = 3;  // validations of loss_last3

SweepStatus status_of(const RunStatus& status, std::optional<bool> is_locked) {
  switch (status.state) {
    case RunStatus::State::kDone:
      return SweepStatus::kDone;
    case RunStatus::State::kStopped:
      return SweepStatus::kStopped;
    case RunStatus::State::kFailed:
      return status.code == static_cast<int>(Kind::kNumerics) ? SweepStatus::kDiverged : SweepStatus::kFailed;
    case RunStatus::State::kRunning:
      return is_locked == false ? SweepStatus::kStopped : SweepStatus::kRunning;  // false: it was killed
  }
  TOKAMAK_UNREACHABLE("a state of a run");
}

nlohmann::ordered_json json_of(const SweepRow& row) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json overrides = nlohmann::ordered_json::object();
  for (const NamedText& one : row.overrides) overrides[one.name] = one.text;
  return {{"id", row.id},
          {"overrides", overrides},
          {"seed", row.seed},
          {"n_body", row.body},
          {"n_head", row.head},
          {"n_total", row.total},
          {"tokens", row.tokens},
          {"flops_full", row.flops_full},
          {"batch_tokens", row.batch_tokens},
          {"steps", row.steps},
          {"loss", or_null(row.loss)},
          {"loss_last3", or_null(row.loss_last3)},
          {"tokens_per_second", or_null(row.tokens_per_second)},
          {"status", enum_name(row.status)},
          {"exit_code", row.exit_code},
          {"error", row.error},
          {"program", row.program}};
}

std::optional<double> number_of(const JsonValue& value) {
  return value.present() ? std::optional(value.number()) : std::nullopt;
}

SweepRow row_of(const JsonDocument& json) {
  const std::string status = json["status"].text();
  const std::vector<std::string>& names = enum_names(SweepStatus{});
  const auto found = std::find(names.begin(), names.end(), status);
  if (found == names.end()) json["status"].refuse("it must be one of " + join(names, ", "));
  SweepRow row{.id = json["id"].text(),
               .overrides = {},
               .seed = json["seed"].whole(INT64_MIN),
               .body = json["n_body"].whole(),
               .head = json["n_head"].whole(),
               .total = json["n_total"].whole(),
               .tokens = json["tokens"].whole(),
               .flops_full = json["flops_full"].number_or(0),
               .batch_tokens = json["batch_tokens"].whole_or(0),
               .steps = json["steps"].whole_or(0),
               .loss = number_of(json["loss"]),
               .loss_last3 = number_of(json["loss_last3"]),
               .tokens_per_second = number_of(json["tokens_per_second"]),
               .status = static_cast<SweepStatus>(found - names.begin()),
               .exit_code = static_cast<int>(json["exit_code"].whole_or(0)),
               .error = json["error"].text_or(""),
               .program = json["program"].text_or("")};
  if (!is_file_name(row.id)) json["id"].refuse("it must be the name of a directory");
  for (const std::string& key : json["overrides"].keys()) {
    row.overrides.push_back({key, json["overrides"][key].text()});
  }
  return row;
}

}  // namespace

// By mfu_full's count, of the run's first `steps` steps.
double flops_of(const RunConfig& config, int64_t steps) {
  const TokenFlops flops = token_flops(config.model);
  double sum = 0;
  for (const StageRow& row : stage_rows(config)) {
    const int64_t done = std::clamp(steps - row.first_step + 1, int64_t{0}, row.options.steps);
    sum += flops.full(row.options.sequence_length) * double(done * row.options.global_batch_tokens);
  }
  return sum;
}

void describe_config(SweepRow& row, const RunConfig& config) {
  const ModelSize size = model_size(config.model);
  row.seed = config.run.seed;
  row.total = size.parameters;
  row.head = config.model.vocab_size * config.model.hidden_size;
  row.body = size.parameters - size.lookup_parameters - row.head;
  row.batch_tokens = config.training.global_batch_tokens;
}

void read_records_of_run(SweepRow& row, const std::string& directory) {
  const std::optional<RunStatus> status = read_run_status(directory);
  if (!status) return;
  const std::optional<bool> locked = is_locked(run_files::at(directory, run_files::kCheckpoints));
  row.status = status_of(*status, locked);
  row.exit_code = status->code;
  row.error = status->cause;
  try {
    const std::string path = run_files::at(directory, run_files::kConfig);
    const RunConfig config = parse_saved_config(read_text(path, Kind::kConfig), path);
    describe_config(row, config);
    Curves curves([](std::string_view name) { return name == kLoss; });
    const RunReport report = read_report(directory, locked, [&](const MetricRecord& record) {
      curves.see(record);
      if (record.is("start")) row.program = record.event->text("program");
    });
    row.steps = report.step;
    row.tokens = report.tokens;
    row.flops_full = flops_of(config, report.step);
    row.tokens_per_second = report.productive_rate();
    const std::vector<CurvePoint>& losses = curves.of(kLoss);
    // A run always validates at its end. Curves leave out a loss that is not finite.
    const bool ends_finite = !losses.empty() && losses.back().step == report.step;
    if (row.status == SweepStatus::kDone && !config.data.validation.empty() && !ends_finite) {
      row.status = SweepStatus::kDiverged;
      row.error = "the last validation's loss is not finite";
    }
    if (losses.empty()) return;
    row.loss = losses.back().mean;
    const int64_t count = std::min(kLast, std::ssize(losses));
    double sum = 0;
    for (auto point = losses.end() - count; point != losses.end(); ++point) sum += point->mean;
    row.loss_last3 = sum / double(count);
  } catch (const Error& error) {
    log::warning("the table lacks what ", directory, " has recorded: ", error.what());
  }
}

std::vector<SweepRow> read_table(const std::string& path) {
  std::vector<SweepRow> rows;
  if (!exists(path)) return rows;
  int64_t number = 0;
  for (const std::string& line : split(read_text(path, Kind::kConfig), '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    rows.push_back(row_of(JsonDocument(line, {.where = str(path, ":", number), .kind = Kind::kConfig})));
  }
  return rows;
}

void write_table(const std::string& path, const std::vector<SweepRow>& rows) {
  std::string text;
  for (const SweepRow& row : rows) {
    text += json_of(row).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  write_text_atomically(path, text, Kind::kConfig);
}

}  // namespace tokamak
