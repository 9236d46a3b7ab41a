#include "train/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "monitor/jsonl.h"
#include "monitor/run_status.h"

namespace tokamak {

LastWords::LastWords(Watch* watch, Run run) : watch_(watch), run_(std::move(run)) {
  if (watch_ != nullptr) watch_->set_last_words([this](int code, const std::string& why) { say(code, why); });
}

void LastWords::forget() {
  if (watch_ != nullptr) watch_->set_last_words({});
}

// Not where this start has said its end, or another has taken over.
bool LastWords::is_running() const {
  const std::optional<RunStatus> status = read_run_status(run_.output_dir);
  return status && status->incarnation == run_.incarnation && status->state == RunStatus::State::kRunning;
}

void LastWords::say(int code, const std::string& why) const {
  // Without rank 0 each of the others comes here, maybe on a host that does not see the directory.
  const bool shared = run_.rank != 0;
  if (shared && !is_running()) return;
  const int claimed = shared ? ::open(claim().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644) : -1;
  if (shared && claimed < 0) return;
  try {
    if (shared && !is_running()) return release(claimed);  // another one has said it meanwhile
    run_.flush();
    MetricRecord record{.step = step_, .event = RunEvent{"end", why, {}}, .values = {count_value("exit_code", code)}};
    record.time = unix_milliseconds();
    if (!run_.records.empty()) JsonlFile(run_.records).write(record);
  } catch (const std::exception& error) {
    log::warning("the end of the run is not in its records: ", error.what());
  }
  if (is_running()) write_end(code, why);
  release(claimed);
}

void LastWords::release(int claimed) const {
  if (claimed < 0) return;
  ::unlink(claim().c_str());
  ::close(claimed);
}

void LastWords::write_end(int code, const std::string& why) const {
  write_run_status(run_.output_dir, {.state = RunStatus::State::kFailed,
                                     .code = code,
                                     .step = step_,
                                     .total_steps = run_.total_steps,
                                     .incarnation = run_.incarnation,
                                     .cause = why});
}

}  // namespace tokamak
