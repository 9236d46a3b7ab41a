// tokamak report RUN...: the use of time by runs, over all their starts, as text or JSON; with --output a page for a
// browser.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "base/strings.h"
#include "checkpoint/lock.h"
#include "cli/command.h"
#include "cli/report_page.h"
#include "cli/version.h"
#include "config/load.h"
#include "config/options_tree.h"
#include "config/yaml.h"
#include "model/flops.h"
#include "report/page.h"
#include "report/run_report.h"
#include "report/text.h"
#include "train/run_config.h"

namespace tokamak::cli {

namespace {

// Points of a curve, in buckets of three values; fewer if many runs share the page.
constexpr int64_t kPointsOfAllRuns = 6000, kFewestPoints = 300;

bool all_differ(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) == names.end();
}

// The shortest last parts of the paths that distinguish the runs: runs/a/x and runs/b/x are a/x and b/x.
std::vector<std::string> names_of(const std::vector<std::string>& directories) {
  std::vector<std::vector<std::string>> parts;
  for (const std::string& directory : directories) {
    parts.emplace_back();
    for (const std::string& part : split(directory, '/')) {
      if (!part.empty() && part != ".") parts.back().push_back(part);
    }
  }
  const auto last_parts = [](const std::vector<std::string>& path, size_t count) {
    return join({path.end() - std::min(count, path.size()), path.end()}, "/");
  };
  for (size_t count = 1;; ++count) {
    std::vector<std::string> names;
    bool is_whole = true;
    for (const auto& path : parts) {
      names.push_back(last_parts(path, count));
      is_whole = is_whole && count >= path.size();
    }
    if (is_whole || all_differ(names)) return names;
  }
}

std::string real_path(const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::canonical(directory, ignored);
  return path.empty() ? directory : path.string();
}

void mark_required(ConfigNode& node) {
  if (is_required(node.comment) && node.type == ConfigNode::Type::kScalar) {
    node.text = "required";
    node.is_text = false;
  }
  for (ConfigNode& child : node.children) mark_required(child);
}

std::map<std::string, std::string> defaults() {
  ConfigNode tree = tree_of(RunConfig{});
  mark_required(tree);
  std::map<std::string, std::string> values;
  for (const ConfigLine& line : config_lines(tree)) values[line.key] = line.value;
  return values;
}

// Returns 0 for a config that this version cannot read.
int64_t parameters_of(const std::string& text, const std::string& path) {
  try {
    return model_size(parse_saved_config(text, path).model).parameters;
  } catch (const Error&) {
    return 0;
  }
}

// Fills in the run's config, key by key with this program's defaults, and its name. Leaves them empty if the file is
// missing or, with a warning, not YAML.
void read_config(const std::string& directory, PageRun& run) {
  run.name.clear();
  const std::string path = run_files::at(directory, run_files::kConfig);
  if (!exists(path)) return;
  try {
    const std::string text = read_text(path, Kind::kConfig);
    std::vector<Problem> problems;
    const std::map<std::string, std::string> standard = defaults();
    for (const ConfigLine& line : config_lines(parse_yaml(text, path, problems))) {
      const auto known = standard.find(line.key);
      run.config.push_back({line.key, line.value, known == standard.end() ? "" : known->second});
      if (line.key == "run.name") run.name = line.value;
    }
    run.parameters = parameters_of(text, path);
  } catch (const Error& error) {
    log::warning("the report has no config: ", error.what());
    run.config.clear();
  }
}

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App* parser) {
    parser->add_option("RUN", directories_, "the run.output_dir of a run, finished or running; several are compared")
        ->required();
    parser->add_flag("--text", text_, "print a table (default)");
    parser->add_flag("--json", json_, "print the values as a JSON object, or a list of them for several runs");
    parser->add_option("--output", output_,
                       "write a page for a browser, one file without network access: curves, restarts, events, config; "
                       "replaces an older one");
    parser->add_option("--compare", compared_, "more runs, after the first ones")->type_name("RUN");
    parser->footer(
        "Productive time is time spent on steps that were kept. Lost are steps that a later start trained again.\n"
        "ETTR is productive time over wall clock, from the first process to the last sign of life.\n\n"
        "  tokamak report runs/mine\n"
        "  tokamak report runs/mine --output report.html\n"
        "  tokamak report runs/sweep-* --output report.html");
  }

  int run() override {
    if (text_ + json_ + !output_.empty() > 1) {
      fail(Kind::kConfig, "report: --text, --json and --output exclude each other", "give one of them");
    }
    directories_.insert(directories_.end(), compared_.begin(), compared_.end());
    std::set<std::string> seen;
    for (const std::string& directory : directories_) {
      if (!seen.insert(real_path(directory)).second) {
        fail(Kind::kConfig, str("report: the run ", directory, " is given twice"), "give each run once");
      }
    }
    if (!output_.empty()) {
      write_report_page(directories_, output_);
      return 0;
    }
    std::vector<RunReport> reports;
    for (const std::string& directory : directories_) {
      reports.push_back(read_report(directory, is_locked(run_files::at(directory, run_files::kCheckpoints))));
    }
    std::fputs((json_ ? json_text(reports) : text_of(reports)).c_str(), stdout);
    return 0;
  }

 private:
  std::vector<std::string> directories_, compared_;
  std::string output_;
  bool text_ = false;
  bool json_ = false;
};

}  // namespace

void write_report_page(const std::vector<std::string>& directories, const std::string& output) {
  const int64_t count = std::ssize(directories);
  PageLimits limits;
  limits.points = std::clamp(kPointsOfAllRuns / count, kFewestPoints, limits.points);
  limits.cells /= count;
  std::vector<PageRun> runs;
  std::vector<std::string> names;  // run.name of each config
  for (const std::string& directory : directories) {
    runs.push_back(read_page_run(directory, limits, is_locked(run_files::at(directory, run_files::kCheckpoints))));
    read_config(directory, runs.back());
    names.push_back(runs.back().name);
  }
  const bool have_names = std::find(names.begin(), names.end(), "") == names.end();
  if (!have_names || !all_differ(names)) names = names_of(directories);
  for (size_t i = 0; i < runs.size(); ++i) runs[i].name = names[i];
  const std::string page = page_of(runs, program_name());
  write_text_atomically(output, page, Kind::kConfig);
  std::printf("%s: %s\n", output.c_str(), human_bytes(page.size()).c_str());
}

void add_report(CLI::App& root, Commands& commands) {
  add_command<ReportCommand>(root, commands, "report",
                             "print a run's use of time: starts, causes, lost steps, goodput; also as a page");
}

}  // namespace tokamak::cli
