// tokamak plan: the memory that a run would take on each rank, without starting it.
#include <iostream>

#include "base/error.h"
#include "base/parallel_for.h"
#include "base/process.h"
#include "cli/command.h"
#include "config/load.h"
#include "model/flops.h"
#include "plan/dry_run.h"
#include "train/memory_check.h"

namespace tokamak::cli {

namespace {

class PlanCommand : public Command {
 public:
  explicit PlanCommand(CLI::App* parser) : Command(parser) {
    parser->add_option("config", path_, "YAML file of the run")->required();
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file");
    parser->add_option("--ranks", ranks_, "ranks of the run to plan for")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--layers-in", layers_in_, "print only how many layers fit into so many bytes, as JSON")
        ->check(CLI::PositiveNumber);
  }

  int run() override {
    RunConfig config = load_config(path_, overrides_);
    complete_from_data(config);
    const GlobalBatch batch = make_global_batch(config.training, config.data, ranks_);
    // Each thread has working memory of its own.
    const AutoInt threads = config.runtime.threads_per_rank;
    if (!threads.is_auto()) set_thread_count(static_cast<int>(threads.value));
    if (layers_in_ > 0) return print_layers(config, batch);
    DryRun run(config, batch, ranks_);
    const BatchShape& shape = run.shape();
    const bool cuda = !run.device().uses_host_memory();
    const ModelSize size = model_size(config.model);
    const double flops =
        flops_per_token_full(config.model, shape.length) * static_cast<double>(shape.tokens_per_step());
    std::cout << "model        " << human_count(static_cast<double>(size.parameters)) << " parameters ("
              << size.parameters << ")\n"
              << "step         " << human_count(static_cast<double>(shape.tokens_per_step())) << " tokens: " << ranks_
              << " rank(s) x " << shape.micro_batches() << " micro-batch(es) of " << shape.micro_batch
              << " sequences of " << shape.length << "; " << human_count(flops) << "FLOP (mfu_full's count)\n"
              << "run          " << shape.total_steps << " steps, "
              << human_count(static_cast<double>(shape.total_steps * shape.tokens_per_step())) << " tokens, "
              << human_count(flops * static_cast<double>(shape.total_steps)) << "FLOP\n"
              << "memory of each rank "
              << (cuda ? str("on its GPU, besides up to ", human_bytes(run.device().startup_bytes()),
                             " of CUDA's context and libraries and ",
                             human_bytes(run.device().reserve_bytes() + run.comm().reserve_bytes()), " reserved for ",
                             kReserveIsFor)
                       : str("with ", thread_count(), " CPU thread(s), besides about ", human_bytes(resident_bytes()),
                             " of program and libraries"))
              << ":\n"
              << run.memory().report();
    return 0;
  }

 private:
  // How many layers fit into the bytes, for scripts that cut a model to a GPU.
  int print_layers(RunConfig& config, const GlobalBatch& batch) const {
    int64_t& layers = config.model.num_hidden_layers;
    for (; layers > 1; --layers) {
      const DryRun run(config, batch, ranks_);
      if (planned_bytes(run.memory(), run.device()) <= layers_in_) break;
    }
    std::cout << R"({"fact": "measured", "name": "layers", "value": )" << layers << R"(, "unit": "layers"})"
              << "\n";
    return 0;
  }

  std::string path_;
  std::vector<std::string> overrides_;
  int ranks_ = 1;
  int64_t layers_in_ = 0;
};

}  // namespace

void add_plan(CLI::App& root, Commands& commands) {
  CLI::App* parser = root.add_subcommand("plan", "print the memory and work of a run on any number of ranks");
  commands.push_back(std::make_unique<PlanCommand>(parser));
}

}  // namespace tokamak::cli
