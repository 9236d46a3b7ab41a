// The frame of a run: how it stands, progress, ranks, its time, charts in as many columns as fit, the last events. A large
// terminal also has the validations, the newest samples and the end of the log. What does not fit is left out as a whole,
// so that no number is cut.
#pragma once

#include <string>
#include <vector>

#include "watch/chart.h"
#include "watch/condition.h"
#include "watch/frame.h"
#include "watch/run_view.h"

namespace tokamak {

// What of the run is shown, as the keys have it.
struct Look {
  int rows = 24, columns = 80;
  bool is_log = false;    // axes of values
  bool is_ascii = false;  // the terminal has no UTF-8
  int zoom = 0;           // the last 1 / 2^zoom of the steps
  std::string footer{};   // the keys
};

inline constexpr int kMostZoom = 20;

struct Shown {
  std::string directory;
  const RunView& view;
  std::optional<Standing> condition;  // empty: no records yet
  std::string notice{};               // what is wrong with the files, or "reading, 40 %"; "" if nothing is
  std::vector<FoundHang> hangs{};     // which are no events of the records
  std::vector<std::string> log{};     // its last lines
};

Frame draw_run(const Shown& shown, const Look& look);

}  // namespace tokamak
