#include "train/run_records.h"

#include <cstdlib>

#include "base/error.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"
#include "train/start_event.h"

namespace tokamak {

namespace {

// With the event "start" written.
Recorder open_recorder(Comm& comm, const RunConfig& config, const RunRecords::Setup& setup) {
  const std::string hosts = all_hosts(comm);
  Sinks sinks;
  collectively(comm, [&] {
    if (comm.rank() != 0) return;
    sinks = make_sinks(config.metrics, {.name = config.run.name,
                                        .output_dir = config.run.output_dir,
                                        .config_text = setup.config_text,
                                        .settings = setup.settings,
                                        .total_steps = setup.total_steps});
  });
  Recorder recorder(std::move(sinks));
  recorder.write(start_record({.exec_time = setup.startup.begin_time(),
                               .incarnation = setup.incarnation,
                               .ranks = comm.size(),
                               .hosts = hosts,
                               .program = setup.program,
                               .command = setup.command},
                              [](const char* name) { return std::getenv(name); }));
  return recorder;
}

}  // namespace

RunRecords::RunRecords(World& world, const RunConfig& config, const Setup& setup)
    : comm_(world.comm()),
      output_dir_(config.run.output_dir),
      total_steps_(setup.total_steps),
      log_interval_(config.metrics.log_interval),
      startup_(setup.startup),
      recorder_(open_recorder(comm_, config, setup)),
      incarnation_(text_of_rank_zero(comm_, [&] { return setup.incarnation; })),
      last_words_(world.watch(), {.rank = comm_.rank(),
                                  .output_dir = output_dir_,
                                  .incarnation = incarnation_,
                                  .records = run_files::at(output_dir_, run_files::kMetrics),
                                  .total_steps = setup.total_steps,
                                  .flush = [this] { recorder_.flush(); }}) {}

void RunRecords::go_to(int64_t step, RunScale scale, std::function<int64_t()> memory_used) {
  at_step(step);
  scale.first_step = step;
  monitor_.emplace(Monitor::Setup{.scale = std::move(scale),
                                  .log_interval = log_interval_,
                                  .memory_used = std::move(memory_used),
                                  .recorder = recorder_});
}

void RunRecords::at_step(int64_t step) {
  step_ = step;
  last_words_.at_step(step);
}

bool RunRecords::was_done() {
  const bool done = value_of_rank_zero(comm_, [&] {
    const std::optional<RunStatus> before = read_run_status(output_dir_);
    return before && before->state == RunStatus::State::kDone && before->step == step_;
  });
  return step_ >= total_steps_ && done;
}

void RunRecords::or_record_end(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    end(RunStatus::State::kFailed, error.what(), error.exit_code());
    throw;
  } catch (const std::exception& error) {
    end(RunStatus::State::kFailed, error.what(), static_cast<int>(Kind::kBug));
    throw;
  }
}

void RunRecords::end(RunStatus::State state, const std::string& detail, int code) {
  last_words_.forget();
  event({"end", detail, {}}, {count_value("exit_code", code)});
  recorder_.flush();  // an error on one rank ends this process where it stands
  write_status(state, code, state == RunStatus::State::kFailed ? detail : "");
}

// The file belongs to the newest start: one that was taken over leaves it alone.
void RunRecords::write_status(RunStatus::State state, int code, const std::string& cause) const {
  if (comm_.rank() != 0) return;
  if (state != RunStatus::State::kRunning) {
    const std::optional<RunStatus> before = read_run_status(output_dir_);
    if (before && before->incarnation != incarnation_) return;
  }
  write_run_status(output_dir_, {.state = state,
                                 .code = code,
                                 .step = step_,
                                 .total_steps = total_steps_,
                                 .incarnation = incarnation_,
                                 .cause = cause});
}

}  // namespace tokamak
