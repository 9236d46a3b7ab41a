// tokamak checkpoint inspect|verify DIR; average, export and import are in files of their own.
#include <cstdio>
#include <string>

#include "base/printable.h"
#include "checkpoint/inspect.h"
#include "cli/command.h"

namespace tokamak::cli {

namespace {

class OnDirectory : public Command {
 public:
  OnDirectory(CLI::App* parser, void (*act)(const std::string& directory)) : act_(act) {
    parser
        ->add_option("DIR", directory_,
                     "one checkpoint (.../checkpoints/step-00000020), the directory of all, or a run's")
        ->required();
  }

  int run() override {
    act_(directory_);
    return 0;
  }

 private:
  void (*act_)(const std::string& directory);
  std::string directory_;
};

void inspect(const std::string& directory) { std::fputs(inspect_checkpoints(directory).c_str(), stdout); }

void verify(const std::string& directory) {
  verify_checkpoints(directory, [](const std::string& line) {
    std::printf("%s\n", printable_lines(line).c_str());
    std::fflush(stdout);  // the next file may take long to read
  });
}

}  // namespace

void add_checkpoint(CLI::App& root, Commands& commands) {
  CLI::App* checkpoint =
      root.add_subcommand("checkpoint", "inspect, verify and average checkpoints, export and import models");
  checkpoint->require_subcommand(1);
  add_command<OnDirectory>(*checkpoint, commands, "inspect", "print a checkpoint's step, tokens, files and parameters",
                           inspect)
      ->footer("  tokamak checkpoint inspect runs/mine");
  add_command<OnDirectory>(*checkpoint, commands, "verify",
                           "read every file and compare sizes and checksums (exit code 4: damaged)", verify)
      ->footer("  tokamak checkpoint verify runs/mine/checkpoints/step-00002000");
  add_checkpoint_average(*checkpoint, commands);
  add_checkpoint_export(*checkpoint, commands);
  add_checkpoint_import(*checkpoint, commands);
}

}  // namespace tokamak::cli
