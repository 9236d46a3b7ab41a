// tokamak checkpoint average: the mean of the weights of several checkpoints, as a checkpoint.
#include <iostream>

#include "checkpoint/choose.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/run_context.h"
#include "interop/average_checkpoints.h"

namespace tokamak::cli {

namespace {

class Average : public Command {
 public:
  explicit Average(CLI::App* parser) {
    parser->add_option("DIR", directories_, "checkpoints of one model (.../checkpoints/step-00000020), two or more")
        ->required()
        ->expected(2, -1);
    parser->add_option("--out", out_, "directory to create, for its checkpoint and the tokenizer; must not exist")
        ->required();
    add_weights(parser, weights_);
    parser->footer(
        "  tokamak checkpoint average runs/mine/checkpoints/step-0000{1800,1900,2000} --out runs/mean\n"
        "  tokamak checkpoint export --to hf runs/mean/checkpoints mean-hf\n"
        "  tokamak train mine.yaml run.output_dir=runs/more checkpoint.load=runs/mean/checkpoints/step-00002000 \\\n"
        "    'checkpoint.allow_changes=[optimizer]'\n\n"
        "The result has the step, config and position in the data of the newest checkpoint, and no optimizer's state.");
  }

  int run() override {
    const StopSignal stop;
    return run_in_world([&](World& world) {
      if (world.size() > 1) fail(Kind::kConfig, str("average runs on one rank, not ", world.size()));
      std::vector<CheckpointReader> readers;
      for (const std::string& directory : directories_) {
        readers.push_back(open_checkpoint_at(world.comm(), directory));
        if (!weights_.empty()) readers.back().use_average(weights_);
      }
      ProgressLines lines;
      const CheckpointManifest mean = average_checkpoints(std::move(readers), out_, [&](int64_t done, int64_t total) {
        expect_no_stop(stop);
        lines.at(done, total, "");
      });
      std::cout << out_ << ": the mean of " << directories_.size() << " checkpoints, step " << mean.point.state.step
                << ", " << human_count(double(mean.param_elements())) << " parameters, "
                << human_bytes(mean.total_bytes()) << ", in " << human_duration(lines.seconds()) << "\n";
      return 0;
    });
  }

 private:
  std::vector<std::string> directories_;
  std::string out_, weights_;
};

}  // namespace

void add_checkpoint_average(CLI::App& checkpoint, Commands& commands) {
  add_command<Average>(checkpoint, commands, "average", "the mean of the weights of several checkpoints");
}

}  // namespace tokamak::cli
