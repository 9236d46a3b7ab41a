#include "report/json.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

double seconds(int64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

Json split_json(const TimeSplit& time) {
  Json json;
  for (const Spent kind : kAllSpent) json[kSpentNames[static_cast<size_t>(kind)]] = seconds(time[kind]);
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

Json report_json(const RunReport& report) {
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
          {"starts", starts}};
}

// ASCII, so no escape sequence reaches a terminal.
std::string printed(const Json& json) { return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string json_of(const RunReport& report) { return printed(report_json(report)); }

std::string json_of(const std::vector<RunReport>& reports) {
  if (reports.size() == 1) return json_of(reports.front());
  Json all = Json::array();
  for (const RunReport& report : reports) all.push_back(report_json(report));
  return printed(all);
}

}  // namespace tokamak
