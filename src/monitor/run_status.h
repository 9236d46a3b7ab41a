// RUN/status.json: how a run stands, for scripts that start it again. One line, replaced as a whole:
//   {"state":"stopped","code":75,"step":120,"total_steps":400,"time":"2026-01-31T12:34:56Z","incarnation":"..."}
// A failed one has "cause", too: what the log says, fit to be printed, cut.
// A run is done when its state is "done", whatever its launcher's exit code was: mpirun's own is 1 after SIGTERM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tokamak {

struct RunStatus {
  enum class State { kRunning, kStopped, kDone, kFailed };
  State state = State::kRunning;
  int code = 0;  // what the process exits with; 0 while it runs
  int64_t step = 0;
  int64_t total_steps = 0;
  std::string incarnation;
  std::string cause;  // why it failed; "": it did not, or has not said
};

// Trouble is a warning: a status is not worth a run.
void write_run_status(const std::string& output_dir, const RunStatus& status) noexcept;

// Of what was written last, or nothing where there is no such file, or none that can be read.
std::optional<RunStatus> read_run_status(const std::string& output_dir);

}  // namespace tokamak
