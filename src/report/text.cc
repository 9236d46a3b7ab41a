#include "report/text.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/clock.h"
#include "base/printable.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int kLabelWidth = 34;
constexpr size_t kLongestPath = 4096;

// Rounded as on the page (page/format.js).
std::string duration(int64_t milliseconds) {
  if (milliseconds < 1000) return str(milliseconds, milliseconds == 0 ? " s" : " ms");
  const double seconds = 1e-3 * static_cast<double>(milliseconds);
  return seconds < 100 ? fixed(seconds, 2) + " s" : human_duration(seconds);
}

std::string percent(int64_t part, int64_t whole) {
  if (part > 0 && static_cast<double>(part) < 0.0005 * static_cast<double>(whole)) return "< 0.1 %";
  return whole > 0 ? fixed(100 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %" : "-";
}

std::string minute(int64_t time) { return utc_text(time).substr(0, 19) + "Z"; }

void line(std::ostream& out, const std::string& label, const std::string& time, const std::string& share,
          const std::string& note = "") {
  out << std::left << std::setw(kLabelWidth) << label << std::right << std::setw(12) << time << std::setw(10) << share
      << note << "\n";
}

void print_time(std::ostream& out, const RunReport& report) {
  const int64_t whole = report.wall_clock();
  line(out, "where the time went", "time", "share");
  for (const auto& [kind, key, label] : kAllSpent) {
    const int64_t part = report.time[kind];
    const bool has_slow = kind == Spent::kProductive && report.slow > 0;
    line(out, label, duration(part), percent(part, whole),
         has_slow ? str("   of it ", duration(report.slow), " slower than 1.5 x the median step") : "");
  }
  line(out, "wall clock", duration(whole), percent(whole, whole));
}

void print_rates(std::ostream& out, const RunReport& report) {
  out << "ETTR " << fixed(100 * report.ettr(), 1) << " %: productive time / wall clock\n"
      << "goodput " << human_count(report.goodput()) << " tokens/s of wall clock, "
      << human_count(report.productive_rate()) << " of productive time\n";
  const SaveTotals& saves = report.saves;
  out << "saves " << saves.committed << " committed, " << saves.refused << " refused";
  if (saves.committed > 0) {
    out << "; " << human_bytes(saves.bytes / saves.committed) << " in "
        << fixed(saves.seconds / static_cast<double>(saves.committed), 3) << " s on average";
  }
  out << "\n";
}

void print_restarts(std::ostream& out, const RunReport& report) {
  std::vector<int64_t> restarts;
  for (const StartReport& start : report.starts) {
    if (start.restart) restarts.push_back(*start.restart);
  }
  if (restarts.empty()) return;
  int64_t sum = 0;
  for (const int64_t one : restarts) sum += one;
  out << "restarts " << restarts.size() << ": " << duration(sum / static_cast<int64_t>(restarts.size()))
      << " on average from the last sign of life to the first step, "
      << duration(*std::max_element(restarts.begin(), restarts.end())) << " at most\n";
}

void print_startup(std::ostream& out, const RunReport& report) {
  const auto last = std::find_if(report.starts.rbegin(), report.starts.rend(),
                                 [](const StartReport& start) { return !start.startup.empty(); });
  if (last == report.starts.rend()) return;
  out << "the last startup, in seconds:";
  for (const NamedValue& phase : last->startup) out << "  " << printable(phase.name) << " " << fixed(phase.value, 2);
  out << "\n";
}

std::string end_text(const StartReport& start) {
  constexpr size_t kLongest = 120;  // characters; train.log has the whole error
  return str(start.end_name(), start.cause.empty() ? "" : ": ", printable(start.cause, kLongest));
}

// The last cell is left-aligned.
void print_row(std::ostream& out, std::initializer_list<int> widths, const std::vector<std::string>& cells) {
  auto cell = cells.begin();
  for (const int width : widths) out << std::setw(width) << *cell++;
  out << "  " << *cell << "\n";
}

void print_starts(std::ostream& out, const RunReport& report) {
  const auto row = [&](const std::vector<std::string>& cells) {
    print_row(out, {5, 22, 7, 11, 11, 9, 9, 7, 12, 11}, cells);
  };
  row({"start", "exec", "ranks", "down", "startup", "from", "to", "lost", "productive", "saves", "end"});
  for (size_t i = 0; i < report.starts.size(); ++i) {
    const StartReport& start = report.starts[i];
    const std::string from = start.ready ? str(start.first_step) : "-", to = start.ready ? str(start.last_step) : "-";
    row({str(i + 1), minute(start.exec), start.ranks > 0 ? str(start.ranks) : "-", duration(start.time[Spent::kDown]),
         duration(start.time[Spent::kStartup]), from, to, str(start.lost_steps),
         duration(start.time[Spent::kProductive]), duration(start.time[Spent::kSaves]), end_text(start)});
  }
}

void print_stages(std::ostream& out, const RunReport& report) {
  if (report.stages.empty()) return;
  const auto row = [&](const std::vector<std::string>& cells) { print_row(out, {9, 9, 9, 14}, cells); };
  row({"from", "to", "length", "tokens/step", "stage"});
  for (const StageReport& stage : report.stages) {
    row({str(stage.first_step), str(stage.last_step), str(stage.sequence_length), str(stage.tokens_per_step),
         printable(stage.name, 64)});
  }
  out << "\n";
}

void print_changes(std::ostream& out, const RunReport& report) {
  for (size_t i = 0; i < report.starts.size(); ++i) {
    const std::string& changed = report.starts[i].changed;
    if (!changed.empty()) out << "start " << i + 1 << " changed the config: " << printable(changed, 400) << "\n";
  }
}

void print_runs(std::ostream& out, const std::vector<RunReport>& reports) {
  const auto row = [&](const std::vector<std::string>& cells) { print_row(out, {10, 10, 10, 12, 9, 12, 8, 7}, cells); };
  row({"step", "of", "tokens", "wall clock", "ETTR", "tokens/s", "starts", "lost", "run"});
  for (const RunReport& report : reports) {
    row({str(report.step), report.total_steps > 0 ? str(report.total_steps) : "-",
         human_count(static_cast<double>(report.tokens)), duration(report.wall_clock()),
         fixed(100 * report.ettr(), 1) + " %", human_count(report.productive_rate()), str(report.starts.size()),
         str(report.lost_steps), printable(report.directory, kLongestPath)});
  }
}

}  // namespace

std::string text_of(const std::vector<RunReport>& reports) {
  if (reports.size() == 1) return text_of(reports.front());
  std::ostringstream out;
  print_runs(out, reports);
  for (const RunReport& report : reports) out << "\n" << text_of(report);
  return out.str();
}

// A later start may have asked for fewer steps than the run already has.
std::string steps_text(int64_t step, int64_t total) {
  return str("step ", step, total <= 0 ? "" : str(step <= total ? " of " : ", beyond its ", total));
}

std::string text_of(const RunReport& report) {
  std::ostringstream out;
  out << printable(report.directory, kLongestPath) << ": " << steps_text(report.step, report.total_steps) << ", "
      << human_count(static_cast<double>(report.tokens)) << " tokens, " << report.starts.size() << " start(s), "
      << report.lost_steps << " step(s) lost\n"
      << "from " << minute(report.starts.front().exec) << " to " << minute(report.starts.back().last_sign)
      << ", the last sign of life\n\n";
  print_time(out, report);
  out << "\n";
  print_rates(out, report);
  print_restarts(out, report);
  print_startup(out, report);
  out << "\n";
  print_stages(out, report);
  print_starts(out, report);
  print_changes(out, report);
  if (!report.suspects.empty()) out << "\nsuspected hosts: " << printable(join(report.suspects, " "), 400) << "\n";
  return out.str();
}

}  // namespace tokamak
