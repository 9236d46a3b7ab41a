// tokamak bench: the speed of a config's training step on this machine, against the rate of its own GEMMs.
#include <iostream>

#include "base/file.h"
#include "bench/calibration.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/plan_report.h"
#include "cli/run_context.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "config/load.h"
#include "engine/engine.h"
#include "plan/auto_choice.h"
#include "plan/prepare_run.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

enum class Measured { kStep, kOps, kMachine, kGeneration };

class BenchCommand : public Command {
 public:
  BenchCommand(CLI::App* parser, Measured measured) : measured_(measured) {
    parser->add_option("config", path_, "YAML file of the run to measure; its data is not read");
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file");
    add_count(parser, "--rounds", rounds_, "repetitions; medians are reported");
    if (measured == Measured::kStep) {
      parser->add_option("--micro-batches", micro_batches_, "micro-batches of a measured step; 0: as the config says")
          ->capture_default_str();
      parser->add_flag("--coordinate-check", coordinate_check_,
                       "instead: train small models of several sizes, and check that no activation grows with the size "
                       "(model.mup); exit code 7 if one does");
    }
    if (measured == Measured::kStep || measured == Measured::kOps) {
      parser
          ->add_option("--documents", mean_document_,
                       "mean tokens of random documents, as masked training has them; default: one per sequence")
          ->check(CLI::PositiveNumber);
    }
    if (measured == Measured::kGeneration) {
      add_count(parser, "--sequences", generation_.sequences, "sequences that are decoded together");
      add_count(parser, "--prompt-tokens", generation_.prompt, "tokens of each prompt");
      add_count(parser, "--tokens", generation_.tokens, "tokens decoded after it, in a round");
    }
    if (measured == Measured::kMachine) {
      parser->add_option("--output", json_, ".json file to write, for tokamak plan --gpu FILE and runtime.machine")
          ->required()
          ->check([](const std::string& path) { return path.ends_with(".json") ? "" : "the file must end in .json"; });
    } else {
      parser->add_option("--json", json_, "write the results to this file, too");
    }
  }

  int run() override {
    return run_in_world([this](World& world) { return bench(world); });
  }

 private:
  static void add_count(CLI::App* parser, const char* name, int64_t& value, const char* help) {
    parser->add_option(name, value, help)->capture_default_str()->check(CLI::PositiveNumber);
  }

  int bench(World& world) {
    if (path_.empty()) fail(Kind::kConfig, "bench: config is required", "tokamak bench --help");
    if (world.size() > 1 && (measured_ == Measured::kOps || measured_ == Measured::kGeneration)) {
      fail(Kind::kConfig, str("bench ops and bench generate run on one rank, not ", world.size()));
    }
    RunConfig config;
    collectively(world.comm(), [&] {
      config = load_config(path_, overrides_);
      if (!coordinate_check_) complete_from_data(config);
      config = config_at_step(config, 1);
    });
    if (coordinate_check_) return check_coordinates(world, config);
    if (measured_ == Measured::kGeneration) return bench_generation(world, config);
    GlobalBatch batch;
    collectively(world.comm(), [&] { batch = make_global_batch(config, world.size()); });
    if (measured_ == Measured::kMachine) return bench_machine(world, config, batch);
    if (measured_ == Measured::kOps) return bench_ops(world, without_choice(config), batch);
    return bench_step(world, config, batch);
  }

  int bench_step(World& world, RunConfig config, const GlobalBatch& batch) {
    Backend backend = make_backend_collectively(world, config.runtime);
    SettledRun settled = settle_run(world, backend, config, batch);
    if (settled.choice && world.rank() == 0) {
      std::cout << "chosen                    " << text_of(config, *settled.choice) << "\n";
    }
    config = settled.config;
    const MemoryShare& memory = settled.memory;
    const PlannedBenchmark planned =
        plan_benchmark(config, batch, settled.mesh->mesh(), backend, memory, micro_batches_);
    const BatchShape& shape = planned.run.shape;
    Engine& engine = *planned.run.engine;
    config.training.micro_batch_size = {shape.micro_batch};
    config.activation_checkpoint = planned.run.activation_checkpoint;
    collectively(world.comm(), [&] { expect_fit(planned.plan, *backend.device, memory, config, shape.micro_batch); });
    const int64_t baseline = backend.device->used_bytes();
    engine.commit();
    engine.parameters().initialize(static_cast<uint64_t>(config.run.seed), engine.compute());
    StepBenchmark result;
    or_end_all(world, [&] {
      result = benchmark_step(
          engine, {.shape = shape, .rounds = rounds_, .mean_document = mean_document_, .gemms = planned.gemms});
    });
    if (world.rank() != 0) return 0;
    const StepReport report{.config = config,
                            .shape = shape,
                            .result = result,
                            .device = backend.device->description(),
                            .peak_flops = backend.device->peak_flops(compute_dtype(config.precision)) * world.size(),
                            .ranks = world.size(),
                            .mean_document = mean_document_,
                            .planned_bytes = planned_bytes(engine.plan(), *backend.device) + baseline,
                            .baseline_bytes = baseline,
                            .peak_bytes = backend.device->peak_bytes()};
    print(std::cout, report);
    write_json(as_json(report));
    return 0;
  }

  int check_coordinates(World& world, const RunConfig& config) {
    if (world.size() > 1) fail(Kind::kConfig, str("bench --coordinate-check runs on one rank, not ", world.size()));
    Backend backend = make_backend_collectively(world, config.runtime);
    const CoordinateCheck check = tokamak::check_coordinates(config, backend, {});
    report(backend, check);
    const std::vector<std::string> failures = check.failures();
    if (failures.empty()) return 0;
    fail(Kind::kNumerics, "the coordinate check fails: sizes depend on the model's, of " + join(failures, ", "),
         config.model.mup.is_on() ? "optimizer.groups may be the reason, or an optimizer.eps that is not small"
                                  : "model.mup scales learning rates and initial values by the model's size");
  }

  int bench_ops(World& world, const RunConfig& config, const GlobalBatch& batch) {
    Backend backend = make_backend_collectively(world, config.runtime);
    DryRun dry(config, batch, 1, INT64_MAX, PlanFor::kBenchmark);
    return report(backend, benchmark_ops(backend, dry, {.rounds = rounds_, .mean_document = mean_document_}));
  }

  // With auto keys it measures the operations of every micro-batch that they choose among.
  int bench_machine(World& world, const RunConfig& stated, const GlobalBatch& batch) {
    RunConfig config = without_choice(stated);
    const auto sizes = leaves_choice(stated) ? tried_micro_batches(stated.training, batch) : std::vector<int64_t>();
    if (!sizes.empty()) config.training.micro_batch_size = {sizes.front()};
    Backend backend = make_backend_collectively(world, config.runtime);
    const auto data_comm = make_data_comm(world.comm(), *backend.device, config.runtime, config.precision.reduce);
    DryRun dry(config, batch, world.size(), INT64_MAX, PlanFor::kBenchmark);
    Machine machine;
    or_end_all(world, [&] {
      machine = calibrate(
          backend, *data_comm, dry,
          {.rounds = rounds_, .ranks_per_node = world.local_size(), .reduce_dtype = reduce_dtype(config.precision)});
      for (size_t i = 1; i < sizes.size(); ++i) {
        config.training.micro_batch_size = {sizes[i]};
        DryRun more(config, batch, world.size(), INT64_MAX, PlanFor::kBenchmark);
        measure_operations(machine, backend, more, rounds_);
      }
    });
    if (world.rank() != 0) return 0;
    write_json(machine_json(machine));
    std::cout << "machine                   " << machine.name << "\n"
              << "large GEMM                " << human_si(machine.bf16_flops, "FLOP/s") << " of a rank\n"
              << "copy                      " << human_si(machine.memory_rate, "B/s") << " of a rank\n"
              << "written                   " << json_ << ": " << machine.measured.size()
              << " measured calls; tokamak plan --gpu " << json_ << " predicts with them\n";
    return 0;
  }

  int bench_generation(World& world, const RunConfig& config) {
    generation_.rounds = rounds_;
    Backend backend = make_backend_collectively(world, config.runtime);
    Engine engine(engine_options(config, {.max_tokens = std::max(generation_.prompt, generation_.sequences),
                                          .max_length = generation_.prompt + generation_.tokens,
                                          .training = false,
                                          .cached_sequences = generation_.sequences}),
                  world.comm(), backend);
    engine.commit();
    engine.parameters().initialize(static_cast<uint64_t>(config.run.seed), engine.compute());
    return report(backend, benchmark_generate(engine, generation_));
  }

  template <class Times>
  int report(const Backend& backend, const Times& times) const {
    std::cout << "machine                   " << backend.device->description() << "\n";
    print(std::cout, times);
    nlohmann::ordered_json json = {{"device", backend.device->description()}};
    json.update(as_json(times));
    write_json(json);
    return 0;
  }

  void write_json(const nlohmann::ordered_json& json) const {
    if (!json_.empty()) write_text_atomically(json_, json.dump(2) + "\n", Kind::kConfig);
  }

  Measured measured_;
  std::string path_;
  std::vector<std::string> overrides_;
  int64_t rounds_ = 3;
  int64_t micro_batches_ = 2;
  int64_t mean_document_ = 0;
  bool coordinate_check_ = false;
  GenerateBenchmarkOptions generation_;
  std::string json_;
};

}  // namespace

void add_bench(CLI::App& root, Commands& commands) {
  CLI::App* bench = root.add_subcommand("bench", "measure a config's training step against this machine's GEMMs");
  const auto add = [&](const char* name, Measured measured, const char* help, const char* example) {
    CLI::App* parser = add_command<BenchCommand>(*bench, commands, name, help, measured);
    parser->footer(example);
    parser->get_option("config")->required();
    parser->preparse_callback([=](size_t) {
      if (!bench->parse_order().empty()) throw CLI::ParseError(str("options come after ", name), 1);
    });
  };
  add("step", Measured::kStep, "a whole training step, as without a subcommand",
      "  mpirun -n 2 tokamak bench step configs/llama-125m.yaml");
  add("ops", Measured::kOps, "each operation of a step by itself, against a copy and a large GEMM",
      "  tokamak bench ops configs/llama-125m.yaml --json ops.json");
  add("calibrate", Measured::kMachine, "operations of a step and collectives: a machine that tokamak plan predicts for",
      "  mpirun -n 2 tokamak bench calibrate configs/llama-125m.yaml --output machine.json");
  add("generate", Measured::kGeneration, "prompts and decoding with a cache, against a copy and its GEMMs",
      "  tokamak bench generate configs/llama-125m.yaml runtime.threads_per_rank=1");
  add_bench_data(*bench, commands);
  add_bench_tokenizer(*bench, commands);
  commands.emplace_back(
      bench, std::make_unique<BenchCommand>(bench, Measured::kStep));  // last: it is parsed with each of them
  bench->footer(
      "  tokamak bench configs/llama-125m.yaml training.micro_batch_size=4\n"
      "  mpirun -n 2 tokamak bench configs/llama-125m.yaml\n"
      "  tokamak bench configs/llama-8b.yaml model.num_hidden_layers=8 --documents 1500\n"
      "  tokamak bench configs/quickstart.yaml model.mup.base_hidden_size=320 --coordinate-check");
}

}  // namespace tokamak::cli
