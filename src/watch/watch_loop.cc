#include "watch/watch_loop.h"

#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "watch/encoding.h"
#include "watch/screen.h"

namespace tokamak {

namespace {

using Key = Screen::Key;

void follow(Key key, Look& look) {
  if (key == Key::kLog) look.is_log = !look.is_log;
  if (key == Key::kCloser) look.zoom = std::min(look.zoom + 1, kMostZoom);
  if (key == Key::kFarther) look.zoom = std::max(look.zoom - 1, 0);
}

std::string footer_of(const Look& look) {
  const std::string steps = look.zoom == 0 ? "all" : str("the last 1/", int64_t{1} << look.zoom);
  return str("q quit   l axes: ", look.is_log ? "log" : "linear", "   + - steps: ", steps);
}

}  // namespace

void watch_in_terminal(RunWatch& run, double interval) {
  Screen screen;
  Look look{.is_ascii = wants_ascii()};
  for (;;) {
    const bool has_more = run.refresh();
    const Stopwatch since;
    Key key = Key::kNone;
    do {
      look.rows = screen.rows();
      look.columns = screen.columns();
      look.footer = footer_of(look);
      screen.show(run.frame(look));
      key = screen.wait(has_more ? 0 : interval - since.seconds());
      if (key == Key::kQuit) return;
      follow(key, look);
    } while (!has_more && since.seconds() < interval);
  }
}

}  // namespace tokamak
