// tokamak bench: the speed of a config's training step on this machine, beside the rate of its own GEMMs.
#include <iomanip>
#include <iostream>

#include "cli/command.h"
#include "cli/run_context.h"
#include "config/load.h"
#include "dist/together.h"
#include "model/flops.h"
#include "train/benchmark.h"
#include "train/memory_check.h"

namespace tokamak::cli {

namespace {

class BenchCommand : public Command {
 public:
  explicit BenchCommand(CLI::App* parser) : Command(parser) {
    parser->add_option("config", path_, "YAML file of the run to measure; its data is not read")->required();
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file");
    parser->add_option("--rounds", rounds_, "repetitions; medians are reported")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--micro-batches", micro_batches_, "micro-batches of a measured step; 0: as the config says")
        ->capture_default_str();
    parser->footer(
        "  tokamak bench configs/llama-125m.yaml training.micro_batch_size=4\n"
        "  mpirun -n 2 tokamak bench configs/llama-125m.yaml");
  }

  int run() override {
    return run_in_world([this](World& world) { return bench(world); });
  }

 private:
  int bench(World& world) {
    RunConfig config;
    together(world.comm(), [&] { config = load_config(path_, overrides_); });
    if (config.model.vocab_size == 0) {
      throw SharedError(Kind::kConfig,
                        str(path_, ": model.vocab_size is 0 (taken from the data), and bench reads no data"),
                        "tokamak bench CONFIG.yaml model.vocab_size=32000");
    }
    BatchShape shape;
    together(world.comm(), [&] { shape = make_batch_shape(config.training, config.data, world.size()); });
    Backend backend = make_backend_together(world, config.runtime);
    const MemoryShare memory = memory_share(*backend.device, world);
    if (shape.micro_batch == 0) {
      shape.micro_batch = choose_micro_batch(config, world.comm(), backend, shape, memory.total);
    }
    if (micro_batches_ > 0) shape.sequences_per_rank = micro_batches_ * shape.micro_batch;
    Assembly assembly(config, world.comm(), backend,
                      {.max_tokens = shape.micro_batch * shape.length, .max_length = shape.length});
    together(world.comm(),
             [&] { expect_fit(assembly.plan(), *backend.device, memory, config, shape.micro_batch); });
    const int64_t baseline = backend.device->used_bytes();
    assembly.commit();
    assembly.parameters().initialize(static_cast<uint64_t>(config.run.seed), assembly.compute());
    const BenchmarkResult result = run_benchmark(assembly, shape, rounds_);
    if (world.rank() == 0) print(config, shape, backend, assembly, result, baseline, world.size());
    return 0;
  }

  static void print(const RunConfig& config, const BatchShape& shape, const Backend& backend, const Assembly& assembly,
                    const BenchmarkResult& result, int64_t baseline, int ranks) {
    const double causal = flops_per_token_causal(config.model, shape.length);
    const double full = flops_per_token_full(config.model, shape.length);
    const auto row = [](const std::string& name) -> std::ostream& {
      return std::cout << std::left << std::setw(26) << name << std::right;
    };
    row("model") << human_count(static_cast<double>(model_size(config.model).parameters)) << " parameters, T "
                 << shape.length << ", "
                 << enum_names(config.precision.compute)[static_cast<size_t>(config.precision.compute)] << "\n";
    row("machine") << backend.device->description() << ", " << ranks << " rank(s)\n";
    row("step") << result.tokens_per_step << " tokens: " << shape.micro_batches() << " micro-batch(es) of "
                << shape.micro_batch << " sequences on each rank\n\n";

    std::cout << "GEMMs of a micro-batch, each run alone\n";
    for (const auto& [gemm, rate] : result.gemms) {
      std::cout << "  " << std::left << std::setw(18) << gemm.name << std::right << std::setw(4) << gemm.count << " x "
                << std::setw(6) << gemm.m << " x " << std::setw(6) << gemm.n << " x " << std::setw(6) << gemm.k
                << std::setw(10) << fixed(rate / 1e9, 0) << " GFLOP/s\n";
    }
    std::cout << "\nA step by operation (rank 0, profiled apart)\n";
    double total = 0;
    for (const auto& [name, entry] : result.profile.entries()) total += entry.seconds;
    for (const auto& [name, entry] : result.profile.entries()) {
      std::cout << "  " << std::left << std::setw(24) << name << std::right << std::setw(6) << entry.calls << " calls"
                << std::setw(9) << fixed(entry.seconds, 3) << " s" << std::setw(8)
                << fixed(100 * entry.seconds / total, 1) << " %";
      if (entry.flops > 0) std::cout << std::setw(10) << fixed(entry.flops / entry.seconds / 1e9, 0) << " GFLOP/s";
      std::cout << "\n";
    }
    std::cout << "\n";
    const int64_t planned = planned_bytes(assembly.plan(), *backend.device) + baseline;
    const int64_t peak = backend.device->peak_bytes();
    row("step time") << fixed(result.step_seconds, 3) << " s\n";
    row("tokens/s") << fixed(result.tokens_per_second, 0) << "\n";
    row("GEMM rate") << fixed(result.gemm_rate / 1e9, 1)
                     << " GFLOP/s (FLOP-weighted over the GEMMs above, all ranks)\n";
    row("training, causal count") << fixed(result.tokens_per_second * causal / 1e9, 1) << " GFLOP/s = "
                                  << fixed(100 * result.tokens_per_second * causal / result.gemm_rate, 1)
                                  << " % of the GEMM rate\n";
    row("training, full count") << fixed(result.tokens_per_second * full / 1e9, 1)
                                << " GFLOP/s = " << fixed(100 * result.tokens_per_second * full / result.gemm_rate, 1)
                                << " % of the GEMM rate\n";
    row("memory planned") << human_bytes(static_cast<double>(planned)) << " (with "
                          << human_bytes(static_cast<double>(baseline)) << " of program and libraries)\n";
    row("memory peak") << human_bytes(static_cast<double>(peak))
                       << " (rank 0; includes the operands of the GEMMs run alone)\n";
  }

  std::string path_;
  std::vector<std::string> overrides_;
  int64_t rounds_ = 3;
  int64_t micro_batches_ = 2;
};

}  // namespace

void add_bench(CLI::App& root, Commands& commands) {
  CLI::App* parser = root.add_subcommand("bench", "measure a config's training step against this machine's GEMMs");
  commands.push_back(std::make_unique<BenchCommand>(parser));
}

}  // namespace tokamak::cli
