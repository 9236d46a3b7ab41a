// tokamak data prepare: raw text to shards, by the stages of a YAML file.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parallel_for.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/prepare_report.h"
#include "cli/version.h"
#include "config/options_file.h"
#include "config/reference_rows.h"
#include "config/yaml.h"
#include "data/pipeline/explain.h"
#include "data/pipeline/prepare.h"

namespace tokamak::cli {

namespace {

// This process's share, by the variables of mpirun, srun and Slurm's arrays. The processes need not run together.
Share share_of_environment(const char* (*get)(const char*)) {
  struct Launcher {
    const char *rank, *size, *first;  // `first`: the least rank, if it need not be 0
  };
  constexpr Launcher kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
                                     {"PMI_RANK", "PMI_SIZE", nullptr},
                                     {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr}};
  const auto number = [&](const char* name) -> int64_t {
    const char* text = name == nullptr ? nullptr : get(name);
    if (text == nullptr) return 0;
    const Parsed<int64_t> parsed = parse_count(text);
    if (!parsed.value)
      fail(Kind::kConfig, str("environment variable ", name, " is ", printable(text)), "expected a number");
    return *parsed.value;
  };
  for (const auto& [rank, size, first] : kLaunchers) {
    if (get(rank) == nullptr || get(size) == nullptr) continue;
    const Share share = {.rank = number(rank) - number(first), .ranks = number(size)};
    if (share.ranks < 1 || share.rank < 0 || share.rank >= share.ranks) {
      fail(Kind::kConfig, str(rank, "=", get(rank), " is none of the ", share.ranks, " ranks of ", size),
           "give an array numbers without gaps, such as 0-15");
    }
    return share;
  }
  return {};
}

constexpr const char* kIntroduction = R"(# Reference: tokamak data prepare

The config of data preparation is one YAML file. This page is generated from the program's own list of options
(`tokamak data prepare --config-reference > docs/prepare.md`); a test keeps it so. [data.md](data.md) runs an example,
and [config.md](config.md) says how values are written and overridden.

A stage is an item of `stages`: its name alone, or with options, as in `- minhash: {bands: 9}`. Stages run in order.

)";

struct StageReference {
  std::string text;
  template <class... Kinds>
  void add(const std::variant<Kinds...>&) {
    ((text += str("\n## stage `", Kinds::kName, "`\n\n", reference::kHead, reference::rows(Kinds{}, ""))), ...);
  }
};

std::string prepare_reference() {
  StageReference stages;
  stages.add(PrepareStage{});
  return str(kIntroduction, reference::kHead, reference::rows(PrepareOptions{}, ""), stages.text);
}

class PrepareCommand : public Command {
 public:
  explicit PrepareCommand(CLI::App* parser) {
    parser->add_option("config", path_, "YAML file of inputs, stages and output (docs/data.md has an example)");
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file, for example output=data/web");
    parser->add_flag("--print-config", print_config_, "print the resolved config with each key's meaning, and stop");
    parser->add_flag("--config-reference", print_reference_, "print docs/prepare.md, and stop");
    explains_ = parser->add_option("--explain", explain_, "print what every stage makes of one document, and stop")
                    ->type_name("ID");
    parser->add_flag("--json", json_, "print the report as JSON");
  }

  int run() override {
    if (print_reference_) {
      std::cout << prepare_reference();
      return 0;
    }
    if (path_.empty()) fail(Kind::kConfig, "tokamak data prepare needs a config", "docs/data.md has an example");
    const auto options = load_options<PrepareOptions>(path_, overrides_,
                                                      [](const PrepareOptions& loaded) { return problems_of(loaded); });
    if (print_config_) {
      std::cout << emit_yaml(tree_of(options), Help::kTrailing);
      return 0;
    }
    const std::string tool = program_name();
    if (explains_->count() > 0) return print_explanation(options, tool);

    PrepareContext context;
    context.share = share_of_environment([](const char* name) -> const char* { return std::getenv(name); });
    context.share.threads = options.threads > 0 ? options.threads : available_cores();
    log::configure(static_cast<int>(context.share.rank), static_cast<int>(context.share.ranks), log::Level::kInfo);
    context.tool = tool;
    context.config = emit_yaml(tree_of(options), Help::kNone);
    PrepareLog lines;
    context.progress = [&](const PrepareProgress& progress) { lines.at(progress); };
    context.add_files = [&](const std::string& staging, const PrepareReport& report) {
      write_text_atomically(staging + "/report.txt", report_text(report), Kind::kData);
      write_text_atomically(staging + "/report.html", report_page(report, context.config, tool), Kind::kData);
    };
    const PrepareReport report = prepare(options, context);
    if (context.share.rank != 0) return 0;
    std::cout << (json_ ? report.json() : report_text(report));
    if (!json_) std::cout << "\n" << options.output << ": report.html shows this as a page\n";
    return 0;
  }

 private:
  int print_explanation(const PrepareOptions& options, const std::string& tool) const {
    const std::optional<Explanation> found = explain(options, tool, explain_);
    if (!found) {
      fail(Kind::kData, str("no input has a document '", printable(explain_), "'"),
           "ids are those of the records and lines, or FILE:NUMBER; documents and drops have them");
    }
    std::cout << explanation_text(*found);
    return 0;
  }

  std::string path_, explain_;
  CLI::Option* explains_ = nullptr;
  std::vector<std::string> overrides_;
  bool print_config_ = false, print_reference_ = false, json_ = false;
};

}  // namespace

void add_data_prepare(CLI::App& data, Commands& commands) {
  add_command<PrepareCommand>(data, commands, "prepare",
                              "turn raw text (WARC, JSONL) into shards: extract, filter, deduplicate, tokenize")
      ->footer(
          "  tokamak data prepare prepare.yaml\n"
          "  mpirun -n 4 tokamak data prepare prepare.yaml output=data/web\n"
          "  tokamak data prepare prepare.yaml --explain crawl.jsonl:10244");
}

}  // namespace tokamak::cli
