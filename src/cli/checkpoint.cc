// tokamak checkpoint inspect|verify DIR; export and import are in files of their own.
#include <cstdio>
#include <string>

#include "base/printable.h"
#include "checkpoint/inspect.h"
#include "cli/command.h"

namespace tokamak::cli {

namespace {

void add_directory(CLI::App* parser, std::string& directory) {
  parser
      ->add_option("DIR", directory, "one checkpoint (.../checkpoints/step-00000020), the directory of all, or a run's")
      ->required();
}

class InspectCheckpoint : public Command {
 public:
  explicit InspectCheckpoint(CLI::App* parser) : Command(parser) { add_directory(parser, directory_); }

  int run() override {
    std::fputs(inspect_checkpoints(directory_).c_str(), stdout);
    return 0;
  }

 private:
  std::string directory_;
};

class VerifyCheckpoint : public Command {
 public:
  explicit VerifyCheckpoint(CLI::App* parser) : Command(parser) { add_directory(parser, directory_); }

  int run() override {
    verify_checkpoints(directory_, [](const std::string& line) {
      std::printf("%s\n", printable_lines(line).c_str());
      std::fflush(stdout);  // a large file takes its time
    });
    return 0;
  }

 private:
  std::string directory_;
};

}  // namespace

void add_checkpoint(CLI::App& root, Commands& commands) {
  CLI::App* checkpoint = root.add_subcommand("checkpoint", "inspect and verify checkpoints, export and import models");
  checkpoint->require_subcommand(1);
  commands.push_back(std::make_unique<InspectCheckpoint>(
      checkpoint->add_subcommand("inspect", "print a checkpoint's step, tokens, files and parameters")));
  commands.push_back(std::make_unique<VerifyCheckpoint>(
      checkpoint->add_subcommand("verify", "read every file and compare sizes and checksums (exit code 4: damaged)")));
  add_checkpoint_export(*checkpoint, commands);
  add_checkpoint_import(*checkpoint, commands);
}

}  // namespace tokamak::cli
