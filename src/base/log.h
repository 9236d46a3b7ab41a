// The log: one line per event on standard error, "time level [rank] text", and in the run's directory. A facade: no
// caller includes spdlog. Rank 0 logs lines about the whole run; each rank logs its own problems with its number. A
// line that cannot be written (closed terminal, broken pipe, full disk) is dropped; the run continues.
#pragma once

#include <string>

#include "base/strings.h"

namespace tokamak::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// Sets rank and level of this process's lines. Called once, as soon as the rank is known. size == 1 omits the rank.
// Ranks above 0 show only warnings and errors, unless level is kDebug.
void configure(int rank, int size, Level level);

// Escapes control characters (base/printable.h): `text` may contain names from files and peers.
void write(Level level, const std::string& text);
void flush();

// Also appends this process's lines to the file `path`, including the newest 200 so far. All ranks of a run share the
// file. Rank 0 renames it to path.1, path.1 to path.2, before it exceeds 32 MiB.
void also_to(const std::string& path);

// Whether standard error is a terminal, on which a line can be redrawn in place.
bool has_terminal();
// Shows an ASCII line below the log's lines, which scroll above it; "" removes it. It is cut to the terminal's width,
// and hidden while the process is in the background.
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
