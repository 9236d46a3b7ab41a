// Times are UTC, durations seconds with three decimals. "seconds" adds up to "wall_clock" to the millisecond, for the
// run and for each start.
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "report/text.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

double seconds(int64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

Json split_json(const TimeSplit& time) {
  Json json;
  for (const SpentKind& one : kAllSpent) json[one.key] = seconds(time[one.kind]);
  return json;
}

Json saves_json(const SaveTotals& saves) {
  return {{"committed", saves.committed},
          {"refused", saves.refused},
          {"bytes", saves.bytes},
          {"write_seconds", saves.seconds}};
}

Json start_json(const StartReport& start) {
  Json startup = Json::object();
  for (const NamedValue& phase : start.startup) startup[phase.name] = phase.value;
  return {{"exec", utc_text(start.exec)},
          {"first_step_began", start.ready ? Json(utc_text(*start.ready)) : Json()},
          {"last_sign_of_life", utc_text(start.last_sign)},
          {"end", start.end_name()},
          {"cause", start.cause},
          {"changed", start.changed},
          {"ranks", start.ranks},
          {"hosts", start.hosts},
          {"incarnation", start.incarnation},
          {"first_step", start.first_step},
          {"last_step", start.last_step},
          {"lost_steps", start.lost_steps},
          {"wall_clock", seconds(start.time.total())},
          {"seconds", split_json(start.time)},
          {"slow", seconds(start.slow)},
          {"restart", start.restart ? Json(seconds(*start.restart)) : Json()},
          {"startup", startup},
          {"saves", saves_json(start.saves)}};
}

Json stages_json(const std::vector<StageReport>& stages) {
  Json all = Json::array();
  for (const StageReport& stage : stages) {
    all.push_back({{"name", stage.name},
                   {"first_step", stage.first_step},
                   {"last_step", stage.last_step},
                   {"sequence_length", stage.sequence_length},
                   {"tokens_per_step", stage.tokens_per_step}});
  }
  return all;
}

}  // namespace

Json json_of(const RunReport& report) {
  Json starts = Json::array();
  for (const StartReport& start : report.starts) starts.push_back(start_json(start));
  return {{"run", report.directory},
          {"step", report.step},
          {"total_steps", report.total_steps},
          {"tokens", report.tokens},
          {"lost_steps", report.lost_steps},
          {"wall_clock", seconds(report.wall_clock())},
          {"seconds", split_json(report.time)},
          {"slow", seconds(report.slow)},
          {"ettr", report.ettr()},
          {"goodput_tokens_per_second", report.goodput()},
          {"productive_tokens_per_second", report.productive_rate()},
          {"saves", saves_json(report.saves)},
          {"suspects", report.suspects},
          {"stages", stages_json(report.stages)},
          {"starts", starts}};
}

// Writes ASCII only, so that no escape sequence reaches a terminal.
std::string json_text(const std::vector<RunReport>& reports) {
  Json all = Json::array();
  for (const RunReport& report : reports) all.push_back(json_of(report));
  return (all.size() == 1 ? all.front() : all).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tokamak
