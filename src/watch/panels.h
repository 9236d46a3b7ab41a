// What a large terminal shows below the charts, side by side: the last validations, the newest samples, the end of the log.
#pragma once

#include <string>
#include <vector>

#include "watch/chart.h"
#include "watch/run_view.h"

namespace tokamak {

// Nothing where the area is too low. `log`: its lines, printable.
void draw_panels(Frame& frame, const Area& area, const RunView& view, const std::vector<std::string>& log);

}  // namespace tokamak
