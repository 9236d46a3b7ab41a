#include "sweep/run_sweep.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parallel_for.h"
#include "base/printable.h"
#include "config/print.h"
#include "monitor/run_status.h"
#include "sweep/child.h"

namespace tokamak {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);
constexpr size_t kLongestError = 300;

std::string output_path(const std::string& directory, const std::string& id) {
  return str(directory, "/logs/", id, ".txt");
}

// The last line of a log with an error, else its last line.
std::string last_error(const std::string& path) {
  std::string last, last_bad;
  for (const std::string& line : split(read_text(path, Kind::kConfig), '\n')) {
    if (trim(line).empty()) continue;
    last = line;
    if (line.find("error") != std::string::npos) last_bad = line;
  }
  return printable(trim(last_bad.empty() ? last : last_bad), kLongestError);
}

SweepRow& row_of(std::vector<SweepRow>& rows, const std::string& id) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const SweepRow& row) { return row.id == id; });
  TOKAMAK_CHECK(found != rows.end(), "the table lacks the run ", id);
  return *found;
}

class Sweep {
 public:
  Sweep(const SweepPlan& plan, const SweepOptions& options)
      : plan_(plan), options_(options), rows_(refresh_table(plan.directory)), slots_(options.parallel) {
    for (const SweepRun& run : plan.runs) {
      const SweepRow& row = row_of(rows_, run.row.id);
      // Whoever removes the directory of a diverged run wants it tried again; a result outlives its directory.
      const bool is_removed = !is_directory(run_directory(plan.directory, row.id));
      if (row.is_over() && !(row.status == SweepStatus::kDiverged && is_removed)) continue;
      waiting_.push_back(&run);
      flops_left_ += run.flops;
    }
    log::info("sweep ", plan.directory, ": ", plan.runs.size(), " run(s), ", plan.runs.size() - waiting_.size(),
              " of them over");
    std::reverse(waiting_.begin(), waiting_.end());
  }

  int run(const StopSignal& stop) {
    while (!waiting_.empty() || busy() > 0) {
      if (stop.received() != 0 && !is_stopping_) {
        is_stopping_ = true;
        log::info("signal ", stop.received(), ": the runs save and stop; start the sweep again to go on");
        waiting_.clear();
        for (const auto& slot : slots_) {
          if (slot) slot->child.ask_to_stop();
        }
      }
      for (int i = 0; i < std::ssize(slots_); ++i) {
        if (slots_[i]) finish(slots_[i]);
        if (!slots_[i] && !waiting_.empty() && !is_stopping_) start(i);
      }
      std::this_thread::sleep_for(kPoll);
    }
    const bool goes_on = is_stopping_ || (code_ == 0 && any_stopped_);
    return goes_on ? static_cast<int>(Kind::kStopped) : code_;
  }

 private:
  struct Slot {
    const SweepRun& run;
    std::string incarnation;  // that status.json named before
    Child child;
    Stopwatch clock;
  };

  int64_t busy() const {
    return std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !!slot; });
  }

  std::optional<RunStatus> status_of(const SweepRun& run) const {
    return read_run_status(run_directory(plan_.directory, run.row.id));
  }

  void start(int slot) {
    const SweepRun& run = *waiting_.back();
    waiting_.pop_back();
    const std::string& id = run.row.id;
    ChildCommand command{.words = options_.train, .output = output_path(plan_.directory, id)};
    command.words.push_back(config_path(plan_.directory, id));
    if (options_.parallel > 1) {
      command.cores = share_of(slot, options_.parallel, available_cores());
      if (options_.devices > 0) {
        std::vector<std::string> devices;
        for (const int device : share_of(slot, options_.parallel, options_.devices)) devices.push_back(str(device));
        command.devices = join(devices, ",");
      }
    }
    log::info(id, ": ", row_of(rows_, id).status == SweepStatus::kWaiting ? "starts" : "starts again", ", ", run.steps,
              " steps; log ", command.output);
    const std::optional<RunStatus> before = status_of(run);
    slots_[slot] = std::make_unique<Slot>(Slot{run, before ? before->incarnation : "", Child(command), {}});
  }

  void finish(std::unique_ptr<Slot>& slot) {
    const std::optional<int> code = slot->child.ended();
    if (!code) return;
    const SweepRun& run = slot->run;
    SweepRow& row = row_of(rows_, run.row.id);
    read_records_of_run(row, run_directory(plan_.directory, row.id));
    const std::optional<RunStatus> status = status_of(run);
    const bool has_recorded_end =
        status && status->incarnation != slot->incarnation && status->state != RunStatus::State::kRunning;
    if (!has_recorded_end && !is_stopping_) {
      row.status = SweepStatus::kFailed;
      row.exit_code = *code != 0 ? *code : static_cast<int>(Kind::kBug);
      row.error = last_error(output_path(plan_.directory, row.id));
    }
    write_table(plan_.table(), rows_);
    flops_left_ -= run.flops;
    if (row.status == SweepStatus::kDone) flops_done_ += run.flops;
    any_stopped_ |= row.status == SweepStatus::kStopped;
    if (row.status == SweepStatus::kFailed && code_ == 0) code_ = row.exit_code;
    const bool is_done = row.status == SweepStatus::kDone, has_rest = flops_left_ > 0 && flops_done_ > 0;
    const std::string message =
        str(row.id, ": ", enum_name(row.status), is_done && row.loss ? ", loss " + fixed(*row.loss, 4) : "",
            row.error.empty() ? "" : ": " + row.error, ", after ", human_duration(slot->clock.seconds()), "; ",
            std::ssize(waiting_) + busy() - 1, " run(s) left",
            has_rest ? ", about " + human_duration(clock_.seconds() * flops_left_ / flops_done_) : "");
    log::write(row.error.empty() ? log::Level::kInfo : log::Level::kWarning, message);
    slot.reset();
  }

  const SweepPlan& plan_;
  const SweepOptions& options_;
  std::vector<SweepRow> rows_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<const SweepRun*> waiting_;  // the next one last
  Stopwatch clock_;
  double flops_left_ = 0, flops_done_ = 0;  // of the runs that were not over at the start
  int code_ = 0;
  bool any_stopped_ = false, is_stopping_ = false;
};

}  // namespace

std::vector<SweepRow> refresh_table(const std::string& directory) {
  const std::string path = directory + "/table.jsonl";
  if (!exists(path))
    fail(Kind::kConfig, str(directory, " is not a sweep: it has no table.jsonl"), "give runs/sweeps/NAME");
  std::vector<SweepRow> rows = read_table(path);
  for (SweepRow& row : rows) read_records_of_run(row, run_directory(directory, row.id));
  write_table(path, rows);
  return rows;
}

void prepare_sweep(const SweepPlan& plan) {
  for (const SweepRun& run : plan.runs) expect_same_config(run, plan.directory);
  for (const char* part : {"/runs", "/configs", "/logs"}) make_directories(plan.directory + part, Kind::kConfig);
  std::vector<SweepRow> rows = read_table(plan.table());
  for (const SweepRun& run : plan.runs) {
    const std::string& id = run.row.id;
    const bool is_new = std::none_of(rows.begin(), rows.end(), [&](const SweepRow& row) { return row.id == id; });
    if (is_new) rows.push_back(run.row);
    write_text_atomically(config_path(plan.directory, id), print_config(run.config), Kind::kConfig);
  }
  write_table(plan.table(), rows);
}

int run_sweep(const SweepPlan& plan, const SweepOptions& options, const StopSignal& stop) {
  return Sweep(plan, options).run(stop);
}

}  // namespace tokamak
