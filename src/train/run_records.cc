#include "train/run_records.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

// Returns a recorder that has written the event "start".
Recorder open_recorder(Comm& comm, const RunConfig& config, int64_t total_steps, const StartFacts& facts) {
  Sinks sinks;
  collectively(comm, [&] {
    if (comm.rank() != 0) return;
    sinks = make_sinks(config.metrics, {.name = config.run.name,
                                        .output_dir = config.run.output_dir,
                                        .config_text = facts.config_text,
                                        .settings = facts.settings,
                                        .total_steps = total_steps});
  });
  Recorder recorder(std::move(sinks));
  recorder.write(start_record(facts, [](const char* name) { return std::getenv(name); }));
  return recorder;
}

}  // namespace

MetricRecord start_record(const StartFacts& facts, const std::function<const char*(const char* name)>& variable) {
  RunEvent event{"start",
                 str(facts.ranks, " rank(s)"),
                 {{"exec", utc_text(facts.startup.begin_time())},
                  {"incarnation", facts.incarnation},
                  {"hosts", facts.hosts},
                  {"program", facts.program},
                  {"command", facts.command},
                  {"system", system_name()}}};
  std::vector<NamedValue> values = {count_value("ranks", facts.ranks)};
  const auto add_text = [&](const char* key, const char* name) {
    const char* text = variable(name);
    if (text != nullptr && *text != '\0') event.texts.push_back({key, text});
  };
  const auto add_count = [&](const char* key, const char* name) {
    const char* text = variable(name);
    int64_t count = 0;
    if (text != nullptr && std::from_chars(text, text + std::strlen(text), count).ec == std::errc()) {
      values.push_back(count_value(key, count));
    }
  };
  add_text("job", "TOKAMAK_JOB");
  add_text("slurm_job", "SLURM_JOB_ID");
  add_count("attempt", "TOKAMAK_ATTEMPT");
  add_count("slurm_restarts", "SLURM_RESTART_COUNT");
  return {.step = 0, .event = std::move(event), .values = std::move(values)};
}

std::string all_hosts(Comm& comm) {
  std::vector<std::string> hosts;
  for (std::string& host : comm.gather_all(host_name())) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(std::move(host));
  }
  return join(hosts, ",");
}

RunRecords::RunRecords(World& world, const RunConfig& config, int64_t total_steps, const StartFacts& facts)
    : comm_(world.comm()),
      status_{config.run.output_dir, facts.incarnation, total_steps},
      log_interval_(config.metrics.log_interval),
      recorder_(open_recorder(comm_, config, total_steps, facts)),
      last_words_(world.watch(), comm_.rank(), status_, [this] { recorder_.flush(); }) {}

void RunRecords::go_to(int64_t step, RunScale scale, std::function<int64_t()> memory_used) {
  at_step(step);
  scale.first_step = step;
  monitor_.emplace(Monitor::Setup{.scale = std::move(scale),
                                  .log_interval = log_interval_,
                                  .memory_used = std::move(memory_used),
                                  .recorder = recorder_});
}

bool RunRecords::was_done() {
  const bool done = value_of_rank_zero(comm_, [&] {
    const std::optional<RunStatus> before = status_.read();
    return before && before->state == RunStatus::State::kDone && before->step == step();
  });
  return step() >= status_.total_steps && done;
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

// The file belongs to the newest start: a start that was taken over does not write it.
void RunRecords::write_status(RunStatus::State state, int code, const std::string& cause) const {
  if (comm_.rank() != 0) return;
  if (state != RunStatus::State::kRunning) {
    const std::optional<RunStatus> before = status_.read();
    if (before && before->incarnation != status_.incarnation) return;
  }
  status_.write(state, code, step(), cause);
}

}  // namespace tokamak
