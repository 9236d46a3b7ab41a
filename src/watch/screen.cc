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
#include "watch/encoding.h"

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

// The named locale may not be installed, or none may be set (encoding.h).
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

attr_t attributes_of(Style style) {
  constexpr std::array<attr_t, kStyles> kAttributes = {A_NORMAL, A_DIM,  A_BOLD,   A_NORMAL,
                                                       A_BOLD,   A_BOLD, A_NORMAL, A_NORMAL};
  return kAttributes.at(static_cast<size_t>(style));
}

short pair_of(Style style) {
  constexpr std::array<short, kStyles> kPairs = {0, 0, 0, 1, 2, 3, 4, 5};
  return has_colors() ? kPairs.at(static_cast<size_t>(style)) : short{0};
}

void define_colors() {
  if (!has_colors()) return;
  start_color();
  use_default_colors();
  constexpr std::array<short, 5> kColors = {COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_CYAN, COLOR_MAGENTA};
  for (size_t i = 0; i < kColors.size(); ++i) init_pair(static_cast<short>(i + 1), kColors[i], -1);
}

Screen::Key key_of(int code) {
  using Key = Screen::Key;
  switch (code) {
    case 'q':
    case 'Q':
      return Key::kQuit;
    case 'l':
      return Key::kLog;
    case '+':
    case '=':
      return Key::kCloser;
    case '-':
      return Key::kFarther;
    case KEY_RESIZE:
      return Key::kResized;
    default:
      return Key::kNone;
  }
}

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
  ::sigprocmask(SIG_BLOCK, &signals, &signals_before_);  // delivered only in wait(), so none is missed
  use_tioctl(TRUE);                                      // the terminal's size, not $LINES and $COLUMNS
  terminal_ = newterm(nullptr, stdout, stdin);
  if (terminal_ == nullptr) fail(Kind::kConfig, "watch: the terminal has no full-screen mode", "use --once");
  cbreak();
  noecho();
  curs_set(0);
  keypad(stdscr, TRUE);
  set_escdelay(25);
  define_colors();
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
      setcchar(&shown, text.data(), attributes_of(cell.style), pair_of(cell.style), nullptr);
      mvwadd_wch(stdscr, row, column, &shown);
    }
  }
  wrefresh(stdscr);
}

Screen::Key Screen::wait(double seconds) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const double whole = std::floor(std::max(0.0, seconds));
  const timespec limit{static_cast<time_t>(whole), static_cast<long>(1e9 * (std::max(0.0, seconds) - whole))};
  const int ready = ::ppoll(&input, 1, &limit, &signals_before_);
  if (received_signal != 0) return Key::kQuit;
  if (ready > 0 && (input.revents & POLLIN) == 0) return Key::kQuit;  // hung up
  wtimeout(stdscr, 0);
  const int code = wgetch(stdscr);  // KEY_RESIZE after a change of size
  // Input that is ready but repeatedly has no key is at its end.
  empty_reads_ = code == ERR && ready > 0 ? empty_reads_ + 1 : 0;
  return empty_reads_ > kMostEmptyReads ? Key::kQuit : key_of(code);
}

}  // namespace tokamak
