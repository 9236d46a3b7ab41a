// The log: one line per event on standard error, "time level [rank] text", and in the run's directory. A facade, so that
// no caller sees spdlog. Lines that concern the whole run come from rank 0; a rank's own trouble is logged by that rank,
// with its number. A line that cannot be written (closed terminal, broken pipe, full disk) is dropped; the run goes on.
#pragma once

#include <string>

#include "base/strings.h"

namespace tokamak::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// Sets how this process's lines are marked and which of them appear. Called once, as soon as the rank is known.
// size == 1 omits the rank. Ranks above 0 show warnings and errors only, unless level is kDebug.
void configure(int rank, int size, Level level);

// Control characters of `text` are shown, not obeyed (base/printable.h): it may hold names from files and peers.
void write(Level level, const std::string& text);
void flush();

// Appends this process's lines to the file `path` too, those of the past as well (the newest 200). All ranks of a run share
// the file. Rank 0 renames it to path.1, path.1 to path.2, before it grows beyond 32 MiB.
void also_to(const std::string& path);

// Whether standard error is a terminal, on which a line can be redrawn in place.
bool has_terminal();
// A line beneath the log's lines, on a terminal: they scroll by above it. `text` is ASCII and replaces what was there, ""
// removes it. It is cut to the terminal's width, and not shown while the process is in the background.
void show_live_line(const std::string& text);

template <class... Values>
void debug(const Values&... values) {
  write(Level::kDebug, str(values...));
}
template <class... Values>
void info(const Values&... values) {
  write(Level::kInfo, str(values...));
}
template <class... Values>
void warning(const Values&... values) {
  write(Level::kWarning, str(values...));
}
template <class... Values>
void error(const Values&... values) {
  write(Level::kError, str(values...));
}

}  // namespace tokamak::log
