// tokamak sweep: runs every combination of some overrides over one config, compares the finished runs, and fits a
// scaling law to them.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "backend/backend.h"
#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/report_page.h"
#include "comm/launch.h"
#include "sweep/columns.h"
#include "sweep/fit_report.h"
#include "sweep/run_sweep.h"
#include "sweep/summary.h"

namespace tokamak::cli {

namespace {

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

class SweepCommand : public Command {
 public:
  explicit SweepCommand(CLI::App* parser) {
    parser->add_option("config", path_, "YAML file of the runs");
    parser->add_option("grid", grid_, "KEY=VALUE,VALUE,... over the file; every combination of the values is a run");
    parser->add_option("--seeds", seeds_, "values of run.seed, as 1,2,3: every combination runs once with each");
    parser->add_option("--name", name_,
                       "name of the sweep; its directory is sweeps/NAME beside run.output_dir; default: run.name");
    parser->add_option("--parallel", parallel_, "runs at once; each gets a share of this machine's cores and GPUs")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--launch", launch_,
                       "words before each run's command, as 'mpirun -n 2'; the run uses those ranks");
    parser->add_flag("--dry-run", dry_run_, "list the runs with their sizes and tokens, and stop");
    parser->add_flag("--commands", commands_, "write the runs' configs, print one shell command for each, and stop");
    parser->add_option("--table", table_, "compare the runs of this sweep's directory as they are now, and stop")
        ->type_name("DIR");
    parser->add_option("--fit", fit_, "fit L(N, D) = E + A / N^alpha + B / D^beta to a table.jsonl, and stop")
        ->type_name("TABLE");
    parser
        ->add_option("--n", measure_, "with --fit: parameters that N counts; those that are only looked up never help")
        ->capture_default_str()
        ->check(CLI::IsMember(enum_names(SizeMeasure{})));
    add_quantity(parser, "--budget", request_.budget, parse_number,
                 "with --fit: FLOPs, C = 6 N D; prints the best N and D for it, and their loss")
        ->type_name("FLOPS");
    add_quantity(parser, "--size", size_, parse_count, "with --fit and --tokens: N of a run whose loss is predicted")
        ->type_name("N");
    add_quantity(parser, "--tokens", tokens_, parse_count, "with --fit and --size: D of that run")->type_name("D");
    parser->footer(
        "The same command again skips runs that are over, resumes those that stopped, and tries failed ones again.\n"
        "A run that diverges is a row of the table. Exit codes: 0 all runs are over, 75 stopped with everything saved;\n"
        "others are those of the first run that failed.\n\n"
        "  tokamak sweep configs/quickstart.yaml optimizer.lr=1e-3,2e-3,4e-3 --seeds 1,2,3 --parallel 2\n"
        "  tokamak sweep --table runs/sweeps/quickstart\n"
        "  tokamak sweep --fit runs/sweeps/sizes/table.jsonl --budget 1e19");
  }

  int run() override {
    if ((size_ > 0) != (tokens_ > 0)) fail(Kind::kConfig, "sweep: --size and --tokens need each other");
    if (fit_.empty() && (size_ > 0 || request_.budget != 0))
      fail(Kind::kConfig, "sweep: a prediction needs --fit TABLE");
    if (path_.empty() + table_.empty() + fit_.empty() != 2) {
      fail(Kind::kConfig, "sweep: give one of CONFIG, --table DIR and --fit TABLE",
           "tokamak sweep --help has examples");
    }
    if (!fit_.empty()) return fit();
    if (!table_.empty()) return compare(table_);
    return sweep();
  }

 private:
  int fit() {
    if (!exists(fit_)) fail(Kind::kConfig, "no table " + fit_, "give the table.jsonl of a sweep");
    request_.size = double(size_);
    request_.tokens = double(tokens_);
    const auto points = points_of(read_table(fit_), enum_from_name<SizeMeasure>(measure_));
    const FitReport report = fit_runs(points, request_);
    std::fputs(fit_text(report).c_str(), stdout);
    for (const std::string& warning : report.warnings) log::warning(warning);
    return 0;
  }

  // Prints the comparison of the sweep's runs and writes their page.
  static int compare(const std::string& directory) {
    const std::vector<SweepRow> rows = refresh_table(directory);
    const std::vector<SweepArm> arms = arms_of(rows);
    std::fputs(summary_text(arms).c_str(), stdout);
    for (const std::string& warning : edge_warnings(arms)) log::warning(warning);
    std::vector<std::string> begun;
    for (const SweepRow& row : rows) {
      if (row.steps > 0) begun.push_back(run_directory(directory, row.id));
    }
    if (!begun.empty()) write_report_page(begun, directory + "/report.html");
    return 0;
  }

  int sweep() {
    if (find_launch([](const char* name) { return std::getenv(name); }).launcher != Launcher::kNone) {
      fail(Kind::kConfig,
           "sweep: a launcher has started this process as one of several ranks, and each would start all runs",
           "start the sweep alone; --launch 'mpirun -n 4' starts each run on 4 ranks");
    }
    std::vector<std::string> words = grid_;
    if (!seeds_.empty()) words.push_back("run.seed=" + seeds_);
    const StopSignal stop;
    const SweepPlan plan = plan_sweep(path_, parse_grid(words), name_);
    if (dry_run_) return list(plan);
    prepare_sweep(plan);
    SweepOptions options{.train = {}, .parallel = parallel_, .devices = cuda_presence().devices};
    for (const std::string& word : split(launch_, ' ')) {
      if (!word.empty()) options.train.push_back(word);
    }
    options.train.insert(options.train.end(), {own_path(), "train"});
    if (commands_) return print_commands(plan, options);
    const int code = run_sweep(plan, options, stop);
    compare(plan.directory);
    return code;
  }

  static int list(const SweepPlan& plan) {
    std::vector<std::vector<std::string>> lines = {{"run", "N body", "N head", "N total", "steps", "tokens", "FLOPs"}};
    double flops = 0;
    for (const SweepRun& run : plan.runs) {
      lines.push_back({run.row.id, human_count(double(run.row.body)), human_count(double(run.row.head)),
                       human_count(double(run.row.total)), str(run.steps), human_count(double(run.tokens)),
                       significant(run.flops, 3)});
      flops += run.flops;
    }
    std::fputs(columns_text(lines).c_str(), stdout);
    std::printf("%s: %s runs, %s FLOPs (mfu_full's count)\n", plan.directory.c_str(), str(plan.runs.size()).c_str(),
                significant(flops, 3).c_str());
    return 0;
  }

  static int print_commands(const SweepPlan& plan, const SweepOptions& options) {
    for (const SweepRun& run : plan.runs) {
      std::vector<std::string> words = options.train;
      words.push_back(config_path(plan.directory, run.row.id));
      for (std::string& word : words) word = shell_word(word);
      std::puts(join(words, " ").c_str());
    }
    return 0;
  }

  std::string path_, seeds_, name_, launch_, table_, fit_;
  std::vector<std::string> grid_;
  int parallel_ = 1;
  bool dry_run_ = false, commands_ = false;
  std::string measure_ = enum_name(SizeMeasure::kBodyHead);
  FitRequest request_;
  int64_t size_ = 0, tokens_ = 0;
};

}  // namespace

void add_sweep(CLI::App& root, Commands& commands) {
  add_command<SweepCommand>(root, commands, "sweep",
                            "run a grid of overrides and compare the runs; fit a scaling law to them");
}

}  // namespace tokamak::cli
