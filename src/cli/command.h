// A subcommand of the program: declares its options on its own parser, and runs if the user chose it. One file per
// subcommand; main.cc lists them all. src/cli is the only module that prints to standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace tokamak::cli {

class Command {
 public:
  virtual ~Command() = default;
  virtual int run() = 0;  // returns the exit code; throws Error
};

using Commands = std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>>;  // with parsers, which the root owns

// Adds the subcommand `name` to `parent`, and C(its parser, arguments...) to `commands`. Returns the parser.
template <class C, class... Arguments>
CLI::App* add_command(CLI::App& parent, Commands& commands, const char* name, const char* help,
                      const Arguments&... arguments) {
  CLI::App* parser = parent.add_subcommand(name, help);
  commands.emplace_back(parser, std::make_unique<C>(parser, arguments...));
  return parser;
}

// Each adds its subcommand (and nested ones) to `root` and to `commands`.
void add_train(CLI::App& root, Commands& commands);
void add_plan(CLI::App& root, Commands& commands);
void add_tokenizer(CLI::App& root, Commands& commands);
void add_tokenizer_train(CLI::App& tokenizer, Commands& commands);     // nested in `tokenizer`
void add_tokenizer_evaluate(CLI::App& tokenizer, Commands& commands);  // nested in `tokenizer`, too
void add_data(CLI::App& root, Commands& commands);
void add_data_files(CLI::App& data, Commands& commands);       // nested in `data`
void add_data_prepare(CLI::App& data, Commands& commands);     // nested in `data`, too
void add_data_classifier(CLI::App& data, Commands& commands);  // nested in `data`, too
void add_checkpoint(CLI::App& root, Commands& commands);
void add_checkpoint_average(CLI::App& checkpoint, Commands& commands);  // nested in `checkpoint`
void add_checkpoint_export(CLI::App& checkpoint, Commands& commands);   // nested in `checkpoint`
void add_checkpoint_import(CLI::App& checkpoint, Commands& commands);   // nested in `checkpoint`, too
void add_generate(CLI::App& root, Commands& commands);
void add_eval(CLI::App& root, Commands& commands);
void add_doctor(CLI::App& root, Commands& commands);
void add_bench(CLI::App& root, Commands& commands);
void add_bench_data(CLI::App& bench, Commands& commands);       // nested in `bench`
void add_bench_tokenizer(CLI::App& bench, Commands& commands);  // nested in `bench`
void add_report(CLI::App& root, Commands& commands);
void add_watch(CLI::App& root, Commands& commands);
void add_serve(CLI::App& root, Commands& commands);
void add_sweep(CLI::App& root, Commands& commands);

}  // namespace tokamak::cli
