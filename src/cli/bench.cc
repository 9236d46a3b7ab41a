// tokamak bench: the speed of a config's training step on this machine, beside the rate of its own GEMMs.
#include <iostream>

#include "base/file.h"
#include "bench/calibration.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/machine_json.h"
#include "cli/run_context.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "config/load.h"
#include "plan/auto_choice.h"
#include "plan/prepare_run.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

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
    parser
        ->add_option("--documents", mean_document_,
                     "random documents of so many tokens on average, as masked training has them; without it each "
                     "sequence is one document, which takes other attention kernels")
        ->check(CLI::PositiveNumber);
    parser->add_flag("--ops", ops_, "measure each operation by itself, against a copy and a large GEMM");
    parser->add_option(
        "--calibrate", calibrate_,
        "measure the step's operations and, on several ranks, collectives, and write this .json file: the "
        "machine that tokamak plan --gpu FILE predicts for");
    parser->add_flag("--generate", generate_,
                     "measure prompts and decoding with a cache, against a copy and its GEMMs");
    parser->add_option("--sequences", generation_.sequences, "with --generate: sequences that are decoded together")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--prompt-tokens", generation_.prompt, "with --generate: tokens of each prompt")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--tokens", generation_.tokens, "with --generate: tokens decoded after it, in a round")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option("--json", json_, "write the results to this file too");
    parser->footer(
        "  tokamak bench configs/llama-125m.yaml training.micro_batch_size=4\n"
        "  mpirun -n 2 tokamak bench configs/llama-125m.yaml\n"
        "  tokamak bench configs/llama-8b.yaml model.num_hidden_layers=8 --documents 1500\n"
        "  tokamak bench configs/llama-125m.yaml --ops --json ops.json\n"
        "  mpirun -n 2 tokamak bench configs/llama-125m.yaml --calibrate machine.json\n"
        "  tokamak bench configs/llama-125m.yaml --generate runtime.threads_per_rank=1");
  }

  int run() override {
    return run_in_world([this](World& world) { return bench(world); });
  }

 private:
  int bench(World& world) {
    if (mean_document_ > 0 && (generate_ || !calibrate_.empty())) {
      fail(Kind::kConfig,
           str("--documents goes with a step and with --ops, not with ", generate_ ? "--generate" : "--calibrate"));
    }
    RunConfig config;
    collectively(world.comm(), [&] {
      config = load_config(path_, overrides_);
      complete_from_data(config);
    });
    if (generate_) return bench_generate(world, config);
    GlobalBatch batch;
    collectively(world.comm(), [&] {
      replicas_of(config.parallelism, world.size());
      batch = make_global_batch(config.training, config.data, world.size());
    });
    if (!calibrate_.empty()) return bench_machine(world, config, batch);
    if (ops_) return bench_ops(world, without_choice(config), batch);
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

  // Of operations: one rank, no model in memory.
  int bench_ops(World& world, const RunConfig& config, const GlobalBatch& batch) {
    if (world.size() > 1) fail(Kind::kConfig, str("bench --ops runs on one rank, not ", world.size()));
    Backend backend = make_backend_collectively(world, config.runtime);
    DryRun dry(config, batch, 1, INT64_MAX, PlanFor::kBenchmark);
    const OpTimes times = benchmark_ops(backend, dry, {.rounds = rounds_, .mean_document = mean_document_});
    std::cout << "machine                   " << backend.device->description() << "\n";
    print(std::cout, times);
    nlohmann::ordered_json json = {{"device", backend.device->description()}};
    json.update(as_json(times));
    write_json(json);
    return 0;
  }

  // On all ranks at once; rank 0 writes what it measured. With auto keys, operations of every micro-batch that these choose
  // among.
  int bench_machine(World& world, const RunConfig& stated, const GlobalBatch& batch) {
    RunConfig config = without_choice(stated);
    std::vector<int64_t> sizes;
    if (leaves_choice(stated)) sizes = tried_micro_batches(stated.training, batch);
    if (!sizes.empty()) config.training.micro_batch_size = {sizes.front()};
    if (ops_ || generate_) fail(Kind::kConfig, "--calibrate, --ops and --generate: one at a time");
    if (!calibrate_.ends_with(".json")) {
      fail(Kind::kConfig, str("--calibrate ", calibrate_, ": the file must end in .json"),
           "plan --gpu knows it by that");
    }
    Backend backend = make_backend_collectively(world, config.runtime);
    const auto data_comm = make_data_comm(world.comm(), *backend.device, config.runtime, config.precision.reduce);
    DryRun dry(config, batch, world.size(), INT64_MAX, PlanFor::kBenchmark);
    Machine machine;
    or_end_all(world, [&] {
      machine = calibrate(backend, *data_comm, dry,
                          {.rounds = rounds_,
                           .ranks_per_node = world.local_size(),
                           .reduce_dtype = config.precision.reduce == Precision::kBF16 ? DType::kBF16 : DType::kF32});
      for (size_t i = 1; i < sizes.size(); ++i) {
        config.training.micro_batch_size = {sizes[i]};
        DryRun more(config, batch, world.size(), INT64_MAX, PlanFor::kBenchmark);
        measure_operations(machine, backend, more, rounds_);
      }
    });
    if (world.rank() != 0) return 0;
    write_text_atomically(calibrate_, machine_json(machine).dump(2) + "\n", Kind::kConfig);
    std::cout << "machine                   " << machine.name << "\n"
              << "large GEMM                " << human_si(machine.bf16_flops, "FLOP/s") << " of a rank\n"
              << "copy                      " << human_si(machine.memory_rate, "B/s") << " of a rank\n"
              << "written                   " << calibrate_ << ": " << machine.measured.size()
              << " measured calls; tokamak plan --gpu " << calibrate_ << " predicts with them\n";
    return 0;
  }

  // Of generation: one rank, random weights.
  int bench_generate(World& world, const RunConfig& config) {
    if (world.size() > 1) fail(Kind::kConfig, str("bench --generate runs on one rank, not ", world.size()));
    if (ops_) fail(Kind::kConfig, "--ops and --generate: one at a time");
    generation_.rounds = rounds_;
    Backend backend = make_backend_collectively(world, config.runtime);
    Engine engine(engine_options(config, {.max_tokens = std::max(generation_.prompt, generation_.sequences),
                                          .max_length = generation_.prompt + generation_.tokens,
                                          .training = false,
                                          .cached_sequences = generation_.sequences}),
                  world.comm(), backend);
    engine.commit();
    engine.parameters().initialize(static_cast<uint64_t>(config.run.seed), engine.compute());
    const GenerateTimes times = benchmark_generate(engine, generation_);
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

  std::string path_;
  std::vector<std::string> overrides_;
  int64_t rounds_ = 3;
  int64_t micro_batches_ = 2;
  int64_t mean_document_ = 0;
  bool ops_ = false, generate_ = false;
  GenerateBenchmarkOptions generation_;
  std::string json_, calibrate_;
};

}  // namespace

void add_bench(CLI::App& root, Commands& commands) {
  CLI::App* parser = root.add_subcommand("bench", "measure a config's training step against this machine's GEMMs");
  commands.push_back(std::make_unique<BenchCommand>(parser));
}

}  // namespace tokamak::cli
