// The list of subcommands, in the order of --help.
#include "cli/command.h"

namespace tokamak::cli {

void add_all(CLI::App& root, Commands& commands) {
  add_train(root, commands);
  add_plan(root, commands);
  add_doctor(root, commands);
  add_tokenizer(root, commands);
  add_data(root, commands);
  add_checkpoint(root, commands);
  add_generate(root, commands);
  add_eval(root, commands);
  add_bench(root, commands);
  add_report(root, commands);
  add_watch(root, commands);
}

}  // namespace tokamak::cli
