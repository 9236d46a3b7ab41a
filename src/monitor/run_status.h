// RUN/status.json: the state of the latest start, for scripts that start a run again. One line, replaced as a whole:
//   {"state":"stopped","code":75,"step":120,"total_steps":400,"time":"2026-01-31T12:34:56Z","incarnation":"..."}
// A failed start has "cause" too: the logged error, printable and cut. A run is done if its state is "done", whatever
// its launcher's exit code was (mpirun's own is 1 after SIGTERM).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tokamak {

struct RunStatus {
  enum class State { kRunning, kStopped, kDone, kFailed };
  State state = State::kRunning;
  int code = 0;  // the exit code; 0 while it runs
  int64_t step = 0;
  int64_t total_steps = 0;
  std::string incarnation;
  std::string cause;  // of a failure; "": none, or not known
};

// An error only logs a warning, since a missing status must not end a run.
void write_run_status(const std::string& output_dir, const RunStatus& status) noexcept;

// The status that was written last; nullopt if there is none or it cannot be read.
std::optional<RunStatus> read_run_status(const std::string& output_dir);

}  // namespace tokamak
