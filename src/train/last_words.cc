#include "train/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/run_files.h"
#include "monitor/jsonl.h"

namespace tokamak {

void StatusFile::write(RunStatus::State state, int code, int64_t step, const std::string& cause) const {
  write_run_status(output_dir, {.state = state,
                                .code = code,
                                .step = step,
                                .total_steps = total_steps,
                                .incarnation = incarnation,
                                .cause = cause});
}

LastWords::LastWords(Watch* watch, int rank, StatusFile status, std::function<void()> flush)
    : watch_(watch), rank_(rank), status_(std::move(status)), flush_(std::move(flush)) {
  if (watch_ != nullptr) watch_->set_last_words([this](int code, const std::string& why) { say(code, why); });
}

void LastWords::forget() {
  if (watch_ != nullptr) watch_->set_last_words({});
}

// False if this start has recorded its end, or another start has taken over.
bool LastWords::is_running() const {
  const std::optional<RunStatus> newest = status_.read();
  return newest && newest->incarnation == status_.incarnation && newest->state == RunStatus::State::kRunning;
}

void LastWords::say(int code, const std::string& why) const {
  // Without rank 0 each of the others comes here, maybe on a host that does not see the directory.
  const bool shared = rank_ != 0;
  if (shared && !is_running()) return;
  const int claimed = shared ? ::open(claim().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644) : -1;
  if (shared && claimed < 0) return;
  try {
    if (shared && !is_running()) return release(claimed);  // another rank has recorded it meanwhile
    flush_();
    MetricRecord record{.step = step_, .event = RunEvent{"end", why, {}}, .values = {count_value("exit_code", code)}};
    record.time = unix_milliseconds();
    JsonlFile(run_files::at(status_.output_dir, run_files::kMetrics)).write(record);
  } catch (const std::exception& error) {
    log::warning("the end of the run is not in its records: ", error.what());
  }
  if (is_running()) status_.write(RunStatus::State::kFailed, code, step_, why);
  release(claimed);
}

void LastWords::release(int claimed) const {
  if (claimed < 0) return;
  ::unlink(claim().c_str());
  ::close(claimed);
}

}  // namespace tokamak
