// tokamak report RUN: where the time of a run went, over all of its starts, as text or JSON; and with --output the run, or
// several, as a page for a browser.
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/file.h"
#include "base/strings.h"
#include "checkpoint/lock.h"
#include "cli/command.h"
#include "cli/report_config.h"
#include "cli/version.h"
#include "plan/hardware.h"
#include "report/json.h"
#include "report/page.h"
#include "report/run_report.h"
#include "report/text.h"

namespace tokamak::cli {

namespace {

// Points of a curve, of which a bucket has three values; less where many runs share the page.
constexpr int64_t kPointsOfAllRuns = 6000, kFewestPoints = 300;

// The shortest last parts of the paths that tell the runs apart: runs/a/x and runs/b/x are a/x and b/x.
std::vector<std::string> names_of(const std::vector<std::string>& directories) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& directory : directories) {
    parts.emplace_back();
    for (const std::string& part : split(directory, '/')) {
      if (!part.empty() && part != ".") parts.back().push_back(part);
    }
  }
  const auto last_parts = [](const std::vector<std::string>& path, size_t count) {
    return join({path.end() - static_cast<std::ptrdiff_t>(std::min(count, path.size())), path.end()}, "/");
  };
  for (size_t count = 1;; ++count) {
    std::vector<std::string> names;
    bool is_whole = true;
    for (const auto& path : parts) {
      names.push_back(last_parts(path, count));
      is_whole = is_whole && count >= path.size();
    }
    std::vector<std::string> sorted = names;
    std::sort(sorted.begin(), sorted.end());
    if (is_whole || std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return names;
  }
}

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App* parser) : Command(parser) {
    parser->add_option("RUN", directory_, "the run.output_dir of a run, which may be going on")->required();
    auto* text = parser->add_flag("--text", text_, "a table for the terminal");
    auto* json = parser->add_flag("--json", json_, "the same values as one JSON object")->excludes(text);
    auto* output = parser->add_option("--output", output_,
                                      "a page for a browser, one file that needs no network: curves, restarts, "
                                      "events, config; an older one is replaced");
    output->excludes(text)->excludes(json);
    parser->add_option("--compare", compared_, "further runs, on the same page in the same charts")
        ->needs(output)
        ->type_name("RUN");
    parser->footer(
        "Productive are the steps that count in the run's course. Steps that a later start trained again are lost.\n"
        "ETTR is productive time over wall clock, from the first process to the last sign of life.\n\n"
        "  tokamak report runs/mine --text\n"
        "  tokamak report runs/mine --output report.html\n"
        "  tokamak report runs/mine --compare runs/other runs/third --output report.html");
  }

  int run() override {
    if (!output_.empty()) return write_page();
    if (!text_ && !json_) {
      fail(Kind::kConfig, "report: say how: --text, --json or --output FILE.html", "tokamak report RUN --text");
    }
    const RunReport report = read_report(directory_, is_locked(directory_ + "/checkpoints"));
    std::fputs((json_ ? json_of(report) : text_of(report)).c_str(), stdout);
    return 0;
  }

 private:
  int write_page() const {
    std::vector<std::string> directories = {directory_};
    directories.insert(directories.end(), compared_.begin(), compared_.end());
    const std::vector<std::string> names = names_of(directories);
    const auto count = static_cast<int64_t>(directories.size());
    PageLimits limits;
    limits.points = std::clamp(kPointsOfAllRuns / count, kFewestPoints, limits.points);
    limits.cells /= count;
    std::vector<PageRun> runs;
    for (size_t i = 0; i < directories.size(); ++i) {
      runs.push_back(read_page_run(directories[i], limits, is_locked(directories[i] + "/checkpoints")));
      runs.back().name = names[i];
      runs.back().config = read_run_config(directories[i]);
      if (const GpuRow* row = gpu_row_of(runs.back().device)) runs.back().memory_rate = row->memory_rate;
    }
    const std::string page = page_of(runs, {.program = program_name()});
    write_text_atomically(output_, page, Kind::kConfig);
    std::printf("%s: %s\n", output_.c_str(), human_bytes(page.size()).c_str());
    return 0;
  }

  std::string directory_;
  std::vector<std::string> compared_;
  std::string output_;
  bool text_ = false;
  bool json_ = false;
};

}  // namespace

void add_report(CLI::App& root, Commands& commands) {
  commands.push_back(std::make_unique<ReportCommand>(root.add_subcommand(
      "report", "where the time of a run went: starts, causes, lost steps, goodput; as a page too")));
}

}  // namespace tokamak::cli
