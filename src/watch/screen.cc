#include "watch/screen.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <langinfo.h>
#include <algorithm>
#include <array>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/printable.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>

// From <term.h>, which defines macros like `columns`.
extern "C" {
int setupterm(const char* name, int descriptor, int* known);
char* tigetstr(const char* capability);
}

namespace tokamak {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t received_signal = 0;  // a handler may write nothing else

constexpr int kMostEmptyReads = 3;

void receive(int signal) { received_signal = signal; }

// The named locale may not be installed, or none may be set (frame.h).
void take_locale() {
  const char* set = std::setlocale(LC_CTYPE, "");
  if (wants_ascii()) return;
  if (set == nullptr || std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Whether the terminal can move its cursor: TERM=dumb cannot. Writes nothing.
bool can_be_drawn_on() {
  int known = 0;
  if (setupterm(nullptr, STDOUT_FILENO, &known) == ERR) return false;
  const char* move = tigetstr("cup");
  return move != nullptr && move != reinterpret_cast<const char*>(-1);
}

// In the order of Style. A pair of colors has the number of its style; -1 is the terminal's own color.
struct Looks {
  attr_t attributes;
  short color;
};
constexpr Looks kLooks[] = {
    {A_NORMAL, -1},         {A_DIM, -1},         {A_BOLD, -1},           {A_NORMAL, COLOR_GREEN},
    {A_BOLD, COLOR_YELLOW}, {A_BOLD, COLOR_RED}, {A_NORMAL, COLOR_CYAN}, {A_NORMAL, COLOR_MAGENTA}};

}  // namespace

Screen::Screen() {
  take_locale();
  if (!can_be_drawn_on()) {
    const char* name = std::getenv("TERM");
    fail(Kind::kConfig,
         str("watch: the terminal '", name == nullptr ? "" : printable(name), "' ($TERM) has no full-screen mode"),
         "use --once, which prints text, or a terminal such as TERM=xterm");
  }
  received_signal = 0;
  // Before ncurses installs its handlers, which end the process with code 1.
  struct sigaction action {};
  action.sa_handler = receive;
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : kSignals) {
    ::sigaction(signal, &action, nullptr);
    ::sigaddset(&signals, signal);
  }
  ::sigprocmask(SIG_BLOCK, &signals, &signals_before_);  // only wait() lets them through, so it sees every signal
  use_tioctl(TRUE);                                      // the terminal's size, not $LINES and $COLUMNS
  terminal_ = newterm(nullptr, stdout, stdin);
  if (terminal_ == nullptr) fail(Kind::kConfig, "watch: the terminal has no full-screen mode", "use --once");
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, TRUE);
  set_escdelay(25);
  if (!has_colors()) return;
  start_color();
  use_default_colors();
  for (short i = 1; i < short{std::size(kLooks)}; ++i) init_pair(i, kLooks[i].color, -1);
}

Screen::~Screen() {
  endwin();
  delscreen(static_cast<SCREEN*>(terminal_));
  for (const int signal : kSignals) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
  if (received_signal != 0 && received_signal != SIGINT) ::raise(received_signal);
}

int Screen::rows() const { return getmaxy(stdscr); }
int Screen::columns() const { return getmaxx(stdscr); }

void Screen::show(const Frame& frame) {
  werase(stdscr);
  for (int row = 0; row < std::min(rows(), frame.rows()); ++row) {
    for (int column = 0; column < std::min(columns(), frame.columns()); ++column) {
      const Cell& cell = frame.at(row, column);
      if (cell.glyph == U' ') continue;
      const std::array<wchar_t, 2> text = {static_cast<wchar_t>(cell.glyph), L'\0'};
      cchar_t shown;
      const auto style = static_cast<short>(cell.style);
      setcchar(&shown, text.data(), kLooks[style].attributes, has_colors() ? style : short{0}, nullptr);
      mvwadd_wch(stdscr, row, column, &shown);
    }
  }
  wrefresh(stdscr);
}

int Screen::wait(double seconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const double whole = std::floor(std::max(0.0, seconds));
  const timespec limit{static_cast<time_t>(whole), static_cast<long>(1e9 * (std::max(0.0, seconds) - whole))};
  const int ready = ::ppoll(&input, 1, &limit, &signals_before_);
  if (received_signal != 0) return 'q';
  if (ready > 0 && (input.revents & POLLIN) == 0) return 'q';  // hung up
  wtimeout(stdscr, 0);
  const int code = wgetch(stdscr);  // KEY_RESIZE after a change of size
  // If input is repeatedly ready but has no key, it has ended.
  empty_reads_ = code == ERR && ready > 0 ? empty_reads_ + 1 : 0;
  return empty_reads_ > kMostEmptyReads ? 'q' : code == ERR ? kNone : code;
}

}  // namespace tokamak
