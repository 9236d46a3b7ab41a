// tokamak watch RUN: shows a run live in a terminal: state, curves, ranks, the last events. It only reads the run's
// files, so the run may be on another machine.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/run_files.h"
#include "checkpoint/lock.h"
#include "cli/command.h"
#include "watch/run_watch.h"

namespace tokamak::cli {

namespace {

class WatchCommand : public Command {
 public:
  explicit WatchCommand(CLI::App* parser) {
    parser->add_option("RUN", directory_, "the run.output_dir of a run, of this machine or on a shared file system")
        ->required();
    auto* once = parser->add_flag("--once", once_, "print the current state as text, and stop: for pipes");
    parser->add_option("--interval", interval_, "seconds between reads of the run's files")
        ->check(CLI::Range(0.1, 3600.0))
        ->excludes(once)
        ->capture_default_str();
    parser->add_option("--columns", look_.columns, "width of the text of --once")
        ->check(CLI::Range(1, 1000))
        ->needs(once)
        ->capture_default_str();
    parser->add_option("--rows", look_.rows, "height of the text of --once")
        ->check(CLI::Range(1, 1000))
        ->needs(once)
        ->capture_default_str();
    parser->footer(
        "Keys: q or Ctrl-C quits, l toggles logarithmic axes, + and - show fewer and more of the last steps. A run\n"
        "that has ended stays on the screen, and continues there when it is started again. A locale without UTF-8\n"
        "(LANG=C) gets curves of ASCII characters.\n\n"
        "  tokamak watch runs/mine\n"
        "  ssh -t cluster tokamak watch /scratch/runs/mine\n"
        "  tokamak watch runs/mine --once | head -3");
  }

  int run() override {
    RunWatch run(directory_, [this] { return is_locked(run_files::at(directory_, run_files::kCheckpoints)); });
    if (once_) {
      while (run.refresh()) continue;
      look_.is_ascii = wants_ascii();
      std::fputs(run.frame(look_).text().c_str(), stdout);
      return 0;
    }
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
      fail(Kind::kConfig, "watch: standard input and output are not a terminal",
           "tokamak watch RUN --once prints text; ssh needs -t");
    }
    run.follow_in_terminal(interval_);
    return 0;
  }

 private:
  std::string directory_;
  bool once_ = false;
  double interval_ = 1;
  Look look_{.rows = 50, .columns = 120};
};

}  // namespace

void add_watch(CLI::App& root, Commands& commands) {
  add_command<WatchCommand>(root, commands, "watch",
                            "show a run live in the terminal: curves, progress, stragglers, events");
}

}  // namespace tokamak::cli
