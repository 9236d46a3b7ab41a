// tokamak plan: the memory and work of each rank of a run, without starting it. With --gpu, also the time on a cluster
// and the best settings.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parallel_for.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "config/load.h"
#include "config/units.h"
#include "data/prepare/text_sources.h"
#include "data/stores/source.h"
#include "model/flops.h"
#include "model/recompute.h"
#include "plan/auto_choice.h"
#include "train/memory_check.h"
#include "train/run_data.h"
#include "train/run_table.h"

namespace tokamak::cli {

namespace {

std::string human(int64_t count) { return human_count(double(count)); }

// Returns the FLOPs that a rank recomputes in a step.
double recomputed_of_step(const RunConfig& config, const DryRun& run) {
  const BatchShape& shape = run.shape();
  const auto costs =
      keep_costs(config.model, shape.sequences_per_rank * shape.length, shape.length, compute_dtype(config.precision));
  return recomputed_flops(costs, run.model().kept());
}

// The memory of the data, or what is known of it where its files are not on this machine.
struct PlannedData {
  DataMemory memory;
  std::string missing;  // why only `read_ahead` is known; "": all is known
};

PlannedData plan_data(const RunConfig& config, const BatchShape& shape) {
  try {
    return {plan_data_memory(config, shape.micro_batch), ""};
  } catch (const Error& error) {
    return {{.read_ahead = read_ahead_bytes(config, shape.micro_batch), .samples = {}}, error.what()};
  }
}

void print_plan(std::ostream& out, const RunConfig& config, DryRun& run) {
  const BatchShape& shape = run.shape();
  const StepRecord step = run.record();
  const int64_t parameters = model_size(config.model).parameters;
  const int64_t tokens = shape.total_steps * shape.tokens_per_step();
  const double flops = token_flops(config.model).full(shape.length);
  out << "model        " << human(parameters) << " parameters (" << parameters << ")\n"
      << "step         " << human(shape.tokens_per_step()) << " tokens: " << run.mesh().world().size() << " rank(s) x "
      << shape.micro_batches() << " micro-batch(es) of " << shape.micro_batch << " sequences of " << shape.length
      << "; " << human_si(flops * double(shape.tokens_per_step()), "FLOP") << " (mfu_full's count)\n"
      << "run          " << shape.total_steps << " steps, " << human(tokens) << " tokens, "
      << human_si(flops * double(tokens), "FLOP") << "\n"
      << "each rank    computes " << human_si(step.flops(), "FLOP") << " a step and sends "
      << human_bytes(static_cast<int64_t>(step.exchanged())) << "\n"
      << "keeps        " << kept_text(config.model, run.model().kept()) << " that may keep them; recomputes "
      << human_si(recomputed_of_step(config, run), "FLOP") << " a step\n"
      << "memory of each rank ";
  if (run.device().uses_host_memory()) {
    out << "with " << thread_count() << " CPU thread(s), besides about " << human_bytes(resident_bytes())
        << " of program and libraries";
  } else {
    out << "on its GPU, and for its snapshot " << human_bytes(pinned_bytes(run.memory(), run.device()))
        << " of pinned host memory, besides up to " << human_bytes(run.device().startup_bytes())
        << " of CUDA's context and libraries and "
        << human_bytes(run.device().reserve_bytes() + run.mesh().reserve_bytes()) << " reserved for " << kReserveIsFor;
  }
  out << ":\n" << run.memory().report();
  const PlannedData data = plan_data(config, shape);
  out << "host memory of the data on each rank: "
      << (data.missing.empty() ? data.memory.text()
                               : str(human_bytes(data.memory.read_ahead),
                                     " to read ahead; indexes and orders are "
                                     "not counted, since ",
                                     data.missing))
      << "\n";
}

// Absent figures are unknown: the data's files are not on this machine.
nlohmann::ordered_json data_json(const PlannedData& data) {
  nlohmann::ordered_json figures = {{"read_ahead", data.memory.read_ahead}};
  if (!data.missing.empty()) return figures;
  figures["order"] = data.memory.samples.order;
  figures["sources"] = data.memory.samples.sources;
  return figures;
}

nlohmann::ordered_json step_json(const StepRecord& step, const Ops& ops) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array(), gemms = nlohmann::ordered_json::array();
  for (const StepRecord::Distinct& call : step.calls) {
    calls.push_back({{"name", call.title},
                     {"text", call.text},
                     {"count", call.count},
                     {"flops", call.flops},
                     {"bytes", call.bytes},
                     {"exchanged_bytes", call.exchanged}});
  }
  for (const RecordedGemm& gemm : gemms_of(step, ops)) {
    gemms.push_back({{"name", gemm.name}, {"m", gemm.m()}, {"n", gemm.n()}, {"k", gemm.k()}, {"count", gemm.count}});
  }
  return {{"flops", step.flops()}, {"exchanged_bytes", step.exchanged()}, {"calls", calls}, {"gemms", gemms}};
}

nlohmann::ordered_json plan_json(const RunConfig& config, DryRun& run) {
  const BatchShape& shape = run.shape();
  const ModelSize size = model_size(config.model);
  nlohmann::ordered_json groups = nlohmann::ordered_json::object(), kept = nlohmann::ordered_json::object();
  const std::vector<KeptTensor> tensors = kept_tensors(config.model);
  for (size_t i = 0; i < tensors.size(); ++i) kept[tensors[i].name] = run.model().kept()[i];
  for (const MemoryPlan::Group& group : run.memory().groups()) groups[group.name] = group.bytes;
  return {{"parameters", size.parameters},
          {"lookup_parameters", size.lookup_parameters},
          {"flops_per_token_full", token_flops(config.model).full(shape.length)},
          {"flops_per_token_causal", token_flops(config.model).causal(shape.length)},
          {"ranks", run.mesh().world().size()},
          {"sequence_length", shape.length},
          {"micro_batch", shape.micro_batch},
          {"micro_batches", shape.micro_batches()},
          {"tokens_per_step", shape.tokens_per_step()},
          {"total_steps", shape.total_steps},
          {"startup_bytes", run.device().startup_bytes()},
          {"reserve_bytes", run.device().reserve_bytes() + run.mesh().reserve_bytes()},
          {"memory_bytes", planned_bytes(run.memory(), run.device())},
          {"pinned_bytes", pinned_bytes(run.memory(), run.device())},
          {"memory", groups},
          {"data_memory", data_json(plan_data(config, shape))},
          {"kept_layers", kept},
          {"recomputed_flops", recomputed_of_step(config, run)},
          {"step", step_json(run.record(), run.ops())}};
}

// Progress of a search: a live line on a terminal, removed at the end and on errors; elsewhere an occasional log line.
class SearchLines {
 public:
  explicit SearchLines(std::string what) : what_(std::move(what)) {}
  ~SearchLines() { log::show_live_line(""); }
  SearchLines(const SearchLines&) = delete;
  SearchLines& operator=(const SearchLines&) = delete;

  void at(int64_t tried, int64_t ways) {
    const std::string line = str(what_, ": ", tried, " of ", ways, " ways to shard and recompute tried");
    if (log::has_terminal()) {
      log::show_live_line(line);
    } else if (since_.seconds() >= ProgressLines::kSecondsBetweenLines) {
      since_.restart();
      log::info(line);
    }
  }

 private:
  std::string what_;
  Stopwatch since_;
};

class PlanCommand : public Command {
 public:
  explicit PlanCommand(CLI::App* parser) {
    parser->add_option("config", path_, "YAML file of the run")->required();
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file");
    parser->add_option("--ranks", ranks_, "ranks of the run to plan for")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->add_option(
        "--gpu", gpu_,
        "predict step times on this GPU of the hardware table (h100, 'NVIDIA H200'), or on the machine of a .json file "
        "from tokamak bench");
    parser->add_option("--gpus-per-node", gpus_per_node_, "with --gpu: ranks of a node; default: the machine's")
        ->check(CLI::PositiveNumber);
    parser->add_option("--network", network_,
                       "with --gpu: bits per second of all ports of a NODE: 8x400Gb, 3.2Tb, 400Gb; default: the usual "
                       "one for this GPU");
    parser->add_flag("--as-configured", as_configured_, "with --gpu: predict the config unchanged, without a search");
    parser->add_flag("--explain", explain_, "with --gpu: print the terms of the predicted step");
    parser->add_option("--trace", trace_, "with --gpu: write the simulated timeline to this file, for Perfetto");
    parser->add_flag("--json", json_,
                     "print JSON: with --gpu the choices, otherwise every operation, copy and collective of a step");
    parser->add_option(
        "--memory", memory_,
        "bytes of each rank that automatic choices may fill, as 80Gi; default: no limit; with --gpu, that GPU's "
        "memory less a free share");
    parser
        ->add_option("--layers-in", layers_in_, "print only the number of layers that fit into so many bytes, as JSON")
        ->check(CLI::PositiveNumber);
    parser->footer(
        "  tokamak plan configs/llama-8b.yaml --ranks 64\n"
        "  tokamak plan configs/llama-8b.yaml --ranks 64 --json | jq .step.flops\n"
        "  tokamak plan configs/llama-8b.yaml --ranks 64 --gpu h100 --network 8x400Gb --explain\n"
        "  tokamak plan configs/llama-8b.yaml --ranks 64 --gpu h100 --as-configured --trace step.json");
  }

  int run() override {
    RunConfig config = load_config(path_, overrides_);
    complete_from_data(config);
    if (!json_) note_text(config);
    const std::vector<StageRow> rows = stage_rows(config);
    if (rows.size() == 1) return plan(config_of_row(config, rows[0]));
    if (!trace_.empty() || layers_in_ > 0) {
      fail(
          Kind::kConfig,
          str(trace_.empty() ? "--layers-in" : "--trace", " is for a run of one stage, and this one has ", rows.size()),
          "leave stages and warm-ups out");
    }
    for (const StageRow& row : rows) {
      if (json_) {
        std::cout << (&row == &rows.front() ? "[" : ",");
      } else {
        std::cout << (&row == &rows.front() ? "" : "\n") << "stage '" << row.options.name << "', steps "
                  << row.first_step << " to " << row.last_step() << " of " << rows.back().last_step() << "\n";
      }
      plan(config_of_row(config, row));
    }
    if (json_) std::cout << "]\n";
    return 0;
  }

 private:
  // Plans a run of one row of stages.
  int plan(RunConfig config) const {
    const int64_t stated_batch = config.training.global_batch_tokens;
    if (chooses()) leave_choice(config);
    const GlobalBatch batch = make_global_batch(config, ranks_);
    // Each thread has its own scratch memory.
    const AutoInt threads = config.runtime.threads_per_rank;
    if (!threads.is_auto()) set_thread_count(static_cast<int>(threads.value));
    if (layers_in_ > 0) return print_layers(config, batch);
    if (!gpu_.empty()) return print_predictions(config, batch, stated_batch);
    for (const auto& [given, option] :
         {std::pair{gpus_per_node_ > 0, "--gpus-per-node"}, std::pair{!network_.empty(), "--network"},
          std::pair{as_configured_, "--as-configured"}, std::pair{explain_ && !leaves_choice(config), "--explain"},
          std::pair{!trace_.empty(), "--trace"}}) {
      if (given) fail(Kind::kConfig, str(option, " needs --gpu"), "such as --gpu h100");
    }
    if (leaves_choice(config)) settle(config, batch);
    DryRun run(config, batch, ranks_, limit());
    if (json_) {
      std::cout << plan_json(config, run).dump(2) << "\n";
    } else {
      print_plan(std::cout, config, run);
    }
    return 0;
  }

  // A plan tokenizes nothing. Memory and work do not depend on how many tokens a source has.
  static void note_text(const RunConfig& config) {
    const std::string cache = text_cache(config.data, config.run.output_dir);
    std::vector<const std::vector<SourceOptions>*> lists = {&config.data.sources, &config.data.validation};
    for (const StageOptions& stage : config.stages) lists.push_back(&stage.sources);
    for (const auto* sources : lists) {
      for (const SourceOptions& source : *sources) {
        if (!is_text_source(source)) continue;
        if (!exists(source.path)) {
          log::info("data: ", source.path, " is text that is not here; the plan does not need it");
          continue;
        }
        const TextSource text = find_text_source(source, cache);
        if (text.is_made) {
          log::info("data: the text ", source.path, " was tokenized before, into ", text.data_set);
          continue;
        }
        log::info("data: ", source.path, " is text of ", human_bytes(text.bytes), " in ", text.files.size(),
                  " file(s); how many tokens it has, and so how often it is repeated, is unknown until tokamak train "
                  "tokenizes it into ",
                  text.data_set);
      }
    }
  }

  bool chooses() const { return !gpu_.empty() && !as_configured_ && layers_in_ == 0; }

  // A plan chooses the micro-batch, and a batch that the ranks can share, instead of refusing the config's.
  void leave_choice(RunConfig& config) const {
    config.training.micro_batch_size = {};
    const int64_t unit = config.data.sequence_length * ranks_;
    config.training.global_batch_tokens = (config.training.global_batch_tokens + unit - 1) / unit * unit;
  }

  int print_predictions(RunConfig& config, const GlobalBatch& batch, int64_t stated_batch) const {
    Machine machine = find_machine(gpu_);
    if (!memory_.empty()) machine = machine.with_memory(limit());
    if (gpus_per_node_ > 0) machine.gpus_per_node = gpus_per_node_;
    if (!network_.empty()) machine.network_rate = network_rate(network_);
    config.runtime.backend = machine.cpu ? BackendKind::kCpu : BackendKind::kCuda;
    PlanReport report{.config = config,
                      .machine = machine,
                      .ranks = ranks_,
                      .choices = {},
                      .stated_batch = stated_batch,
                      .as_configured = as_configured_,
                      .explain = explain_};
    // A script may read JSON and log from one pipe.
    if (!json_ && !log::has_terminal()) log::info("predicting steps of ", ranks_, " rank(s) on ", machine.name);
    if (as_configured_) {
      const RecomputeMode asked = config.activation_checkpoint.mode;
      if (leaves_choice(config)) {
        const DryRun least(with_choice(config, least_choice(config)), batch, ranks_);
        report.candidates = candidates(config, batch, ranks_, machine, plannable_bytes(least, machine));
        config = with_choice(
            config, report.candidates.fitting.empty() ? least_choice(config) : report.candidates.fitting[0].choice);
      }
      Prediction p = predict(config, batch, ranks_, machine);
      p.recompute = asked;
      (p.fits() ? report.choices.fitting : report.choices.others).push_back(p);
    } else {
      SearchLines lines(str("predicting steps of ", ranks_, " rank(s) on ", machine.name));
      report.choices = search(config, batch, ranks_, machine, [&](int64_t tried, int64_t ways) {
        if (!json_ || log::has_terminal()) lines.at(tried, ways);
      });
    }
    if (!trace_.empty()) {
      config.training.micro_batch_size = {report.best().shape.micro_batch};
      config.parallelism = report.best().parallelism;
      config.activation_checkpoint.mode = report.best().recompute;
      if (report.best().recompute == RecomputeMode::kAuto) {
        config.activation_checkpoint = {RecomputeMode::kSelective, {}, counts_of(config.model, report.best().kept)};
      }
      std::string trace;
      predict(config, batch, ranks_, machine, &trace);
      write_text_atomically(trace_, trace, Kind::kConfig);
    }
    if (json_) {
      std::cout << as_json(report).dump(2) << "\n";
    } else {
      print(std::cout, report);
    }
    return 0;
  }

  // Sets the auto keys as a start on the ranks of one node would, with the memory of --memory.
  void settle(RunConfig& config, const GlobalBatch& batch) const {
    const std::string device = DryRun(without_choice(config), batch, ranks_).device().description();
    const Machine machine = machine_of(config.runtime, device).with_memory(limit());
    const Candidates all = candidates(config, batch, ranks_, machine, limit());
    if (explain_) explain(std::cout, config, machine, all);
    config = with_choice(config, all.fitting.empty() ? least_choice(config) : all.fitting[0].choice);
  }

  int64_t limit() const {
    if (memory_.empty()) return INT64_MAX;
    const Parsed<int64_t> bytes = parse_count(memory_);
    if (!bytes.value || *bytes.value < 1) {
      fail(Kind::kConfig, str("--memory '", memory_, "' is not a number of bytes"), "for example 80Gi");
    }
    return *bytes.value;
  }

  // Prints how many layers a benchmark may have in this memory, for scripts that shorten a model for a GPU.
  int print_layers(RunConfig& config, const GlobalBatch& batch) const {
    int64_t& layers = config.model.num_hidden_layers;
    for (; layers > 1; --layers) {
      const DryRun run(without_choice(config), batch, ranks_, INT64_MAX, PlanFor::kBenchmark);
      if (planned_bytes(run.memory(), run.device()) <= layers_in_) break;
    }
    std::cout << R"({"fact": "measured", "name": "layers", "value": )" << layers << R"(, "unit": "layers"})"
              << "\n";
    return 0;
  }

  std::string path_;
  std::vector<std::string> overrides_;
  int ranks_ = 1;
  bool json_ = false;
  std::string memory_;
  int64_t layers_in_ = 0;
  std::string gpu_, network_, trace_;
  int gpus_per_node_ = 0;
  bool as_configured_ = false, explain_ = false;
};

}  // namespace

void add_plan(CLI::App& root, Commands& commands) {
  add_command<PlanCommand>(
      root, commands, "plan",
      "print a run's memory and work on any number of ranks; with --gpu, predict its speed and search settings");
}

}  // namespace tokamak::cli
