// A subcommand of the program: declares its options on its own parser, and runs if the user chose it. One file per
// subcommand; registry.cc lists them all. src/cli is the only module that prints to standard output.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

namespace tokamak::cli {

class Command {
 public:
  virtual ~Command() = default;
  virtual int run() = 0;  // returns the exit code; throws Error
  bool chosen() const { return parser_->parsed(); }

 protected:
  explicit Command(CLI::App* parser) : parser_(parser) {}

 private:
  CLI::App* parser_;  // owned by the root parser
};

using Commands = std::vector<std::unique_ptr<Command>>;

// Each adds its subcommand (and nested ones) to `root` and itself to `commands`.
void add_train(CLI::App& root, Commands& commands);
void add_plan(CLI::App& root, Commands& commands);
void add_tokenizer(CLI::App& root, Commands& commands);
void add_data(CLI::App& root, Commands& commands);
void add_checkpoint(CLI::App& root, Commands& commands);
void add_checkpoint_export(CLI::App& checkpoint, Commands& commands);  // nested in `checkpoint`
void add_checkpoint_import(CLI::App& checkpoint, Commands& commands);  //
void add_generate(CLI::App& root, Commands& commands);
void add_eval(CLI::App& root, Commands& commands);
void add_doctor(CLI::App& root, Commands& commands);
void add_bench(CLI::App& root, Commands& commands);
void add_report(CLI::App& root, Commands& commands);
void add_watch(CLI::App& root, Commands& commands);
void add_all(CLI::App& root, Commands& commands);

}  // namespace tokamak::cli
