// argv -> subcommand -> exit code. An error ends the process with the code of its kind (cli/run_context.h
// ends all ranks of a run).
#include <csignal>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/usage_error.h"
#include "cli/version.h"

namespace tokamak::cli {
namespace {

int run(int argc, char** argv) {
  CLI::App root("Pretrains large language models: tokenizer, data, training, checkpoints, in one program.", "tokamak");
  root.set_version_flag("--version", version_text());
  root.require_subcommand(1);
  root.get_formatter()->column_width(36);
  Commands commands;
  for (const auto add : {add_train, add_plan, add_doctor, add_tokenizer, add_data, add_checkpoint, add_generate,
                         add_eval, add_serve, add_bench, add_report, add_watch, add_sweep}) {
    add(root, commands);  // in the order of --help
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != EXIT_SUCCESS) refuse_usage(root, error);
    return root.exit(error);  // --help, --version
  }
  for (const auto& [parser, command] : commands) {
    if (parser->parsed()) return command->run();
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace tokamak::cli

int main(int argc, char** argv) {
  using namespace tokamak;
  open_standard_files();
  // Beyond `ulimit -f` a write fails with EFBIG, as on a full disk; the signal would kill.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return cli::run(argc, argv);
  } catch (const Error& error) {
    log::error(error.what(), error.hint().empty() ? "" : "\n  hint: ", error.hint());
    return error.exit_code();
  } catch (const std::exception& error) {
    log::error(error.what());
    return static_cast<int>(Kind::kBug);
  }
}
