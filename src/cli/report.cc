// tokamak report RUN --text | --json: where the time of a run went, over all of its starts.
#include "report/run_report.h"

#include <cstdio>
#include <string>

#include "cli/command.h"
#include "report/json.h"
#include "report/text.h"

namespace tokamak::cli {

namespace {

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App* parser) : Command(parser) {
    parser->add_option("RUN", directory_, "the run.output_dir of a run, which may be going on")->required();
    auto* text = parser->add_flag("--text", text_, "a table for the terminal");
    parser->add_flag("--json", json_, "the same values as one JSON object")->excludes(text);
    parser->footer(
        "Productive are the steps that count in the run's course. Steps that a later start trained again are lost.\n"
        "ETTR is productive time over wall clock, from the first process to the last sign of life.\n\n"
        "  tokamak report runs/mine --text");
  }

  int run() override {
    if (!text_ && !json_) fail(Kind::kConfig, "report: say how: --text or --json", "tokamak report RUN --text");
    const RunReport report = read_report(directory_);
    std::fputs((json_ ? json_of(report) : text_of(report)).c_str(), stdout);
    return 0;
  }

 private:
  std::string directory_;
  bool text_ = false;
  bool json_ = false;
};

}  // namespace

void add_report(CLI::App& root, Commands& commands) {
  commands.push_back(std::make_unique<ReportCommand>(
      root.add_subcommand("report", "where the time of a run went: starts, causes, lost steps, goodput")));
}

}  // namespace tokamak::cli
