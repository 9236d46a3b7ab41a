// The frame of a run: its state, progress, ranks, time, charts in as many columns as fit, the last events. A field
// that does not fit is left out as a whole, so no number is cut.
#pragma once

#include <string>
#include <vector>

#include "watch/chart.h"
#include "watch/frame.h"
#include "watch/run_view.h"

namespace tokamak {

// The user's choices.
struct Look {
  int rows = 24, columns = 80;
  bool is_log = false;    // axes of values
  bool is_ascii = false;  // the terminal has no UTF-8
  int zoom = 0;           // show the last 1 / 2^zoom of the steps
  std::string footer{};   // the keys
};

inline constexpr int kMostZoom = 20;

struct Shown {
  std::string directory;
  RunView view{};
  std::optional<RunReport> report{};  // of `view`, judged by its life signs; empty: no records and no status.json yet
  std::string notice{};               // why the files cannot be read, or "reading, 40 %"
  std::vector<FoundHang> hangs{};
};

Frame draw_run(const Shown& shown, const Look& look);

}  // namespace tokamak
