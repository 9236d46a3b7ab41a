// tokamak train: a training run from a YAML file, on one rank or all that a launcher has started (comm/launch.h).
#include <iostream>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/decay_run.h"
#include "cli/option_values.h"
#include "cli/progress.h"
#include "cli/run_context.h"
#include "cli/trace_run.h"
#include "cli/version.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"
#include "config/drift.h"
#include "config/load.h"
#include "config/print.h"
#include "data/manifest.h"
#include "data/prepare/text_sources.h"
#include "data/stores/source.h"
#include "eval/evaluations.h"
#include "plan/prepare_run.h"
#include "resilience/watchdog.h"
#include "train/run_data.h"
#include "train/run_plan.h"
#include "train/sampler.h"
#include "train/trainer.h"

namespace tokamak::cli {

namespace {

class TrainCommand : public Command {
 public:
  explicit TrainCommand(CLI::App* parser) {
    parser->add_option("config", path_, "YAML file of the run (configs/ has examples, docs/config.md the reference)");
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file, for example optimizer.lr=3e-4");
    parser->add_flag("--print-config", print_config_, "print the resolved config with each key's meaning, and stop");
    parser->add_option("--print-value", print_value_, "print only this key's value, for scripts, and stop");
    parser->add_flag("--config-reference", print_reference_, "print docs/config.md, and stop");
    parser->add_option("--stop-at-step", stop_at_step_, "save and exit 75 after this step, as on SIGTERM; 0: never")
        ->capture_default_str();
    decay_from_ = parser->add_option("--decay-from", decay_.from,
                                     "checkpoint of a run with a constant learning rate; a new run, "
                                     "run.output_dir-decay-STEP, decays from there");
    add_quantity(parser, "--decay", decay_.length, parse_training_length,
                 "length of that decay: steps, tokens, or a share of the steps before it")
        ->default_str(print_training_length(decay_.length))
        ->needs(decay_from_);
    auto* const traced = parser->add_option("--trace-step", trace_.step,
                                            "name the first value of this step that is not finite, and stop; trains "
                                            "from --checkpoint up to it, in run.output_dir-trace-STEP");
    auto* const from = parser->add_option("--checkpoint", trace_.checkpoint, "checkpoint before the step to trace");
    traced->needs(from)->excludes(decay_from_)->check(CLI::PositiveNumber);
    from->needs(traced);
    parser->footer(
        "Exit codes: 0 done, 2 config, 3 data, 4 checkpoint, 5 device missing or too small, 6 communication, 7 "
        "numerics,\n"
        "8 device fault, 75 stopped by SIGTERM, SIGINT, SIGUSR1 or SIGHUP with everything saved: start it again to "
        "resume.\n\n"
        "  tokamak train configs/quickstart.yaml\n"
        "  mpirun -n 4 tokamak train configs/llama-125m.yaml optimizer.lr=3e-4\n"
        "  srun -N2 --ntasks-per-node=8 tokamak train configs/llama-1b.yaml\n"
        "  tokamak train mine.yaml --decay-from runs/mine/checkpoints/step-00010000 --decay 10%\n"
        "  tokamak train mine.yaml --trace-step 10420 --checkpoint runs/mine/checkpoints/step-00010000");
  }

  int run() override {
    if (print_reference_) {
      std::cout << config_reference();
      return 0;
    }
    if (path_.empty()) fail(Kind::kConfig, "train: no config file given", "tokamak train CONFIG.yaml [KEY=VALUE ...]");
    if (print_config_) {
      std::cout << tokamak::print_config(load(), Help::kTrailing);
      return 0;
    }
    if (!print_value_.empty()) {
      std::cout << tokamak::print_value(load(), print_value_) << "\n";
      return 0;
    }
    StopSignal stop;  // made before the ranks meet, so that a signal is not lost meanwhile
    return run_in_world([&](World& world) { return train(world, stop); }, [&] { return stop.received() != 0; });
  }

 private:
  RunConfig load() const {
    if (decay_from_->count() > 0) return load_decay_run(path_, overrides_, decay_);
    if (trace_.step > 0) return load_trace_run(path_, overrides_, trace_);
    return load_config(path_, overrides_);
  }

  int train(World& world, StopSignal& stop) {
    StartupClock startup(process_age());
    startup.done("world");
    Watchdog watchdog(world);
    RunConfig config;
    collectively(world.comm(), [&] {
      config = load();
      watchdog.configure(
          {.limits = config.resilience, .directory = config.run.output_dir, .interval = config.metrics.log_interval});
    });
    stop.set_deadline(config.resilience.stop_deadline);
    tokenize_text(world, config.data.sources, config, stop, watchdog.progress());
    tokenize_text(world, config.data.validation, config, stop, watchdog.progress());
    for (StageOptions& stage : config.stages) tokenize_text(world, stage.sources, config, stop, watchdog.progress());
    collectively(world.comm(), [&] { complete_from_data(config); });
    std::vector<NamedText> settings;
    for (const ConfigLine& line : config_values(config)) settings.push_back({line.key, line.value});
    startup.done("config");
    Backend backend = make_backend_collectively(world, config.runtime);
    const Observation recorded(*backend.device, watchdog.flight_record());
    std::optional<Sampler> sampler;
    collectively(world.comm(), [&] {
      for (const StageRow& row : stage_rows(config)) {  // these fail before the run makes anything
        make_row_batch(config, row, world.size());
        const RunConfig own = config_of_row(config, row);
        read_evals(own);
        fail_with_places(find_sample_problems(own), path_, overrides_);
      }
      if (!config.training.samples.prompts.empty()) sampler.emplace(config_at_step(config, 1));
    });
    startup.done("device");
    OpenRun open(world, config,
                 {.program = program_name(),
                  .command = command_line(),
                  .config_text = tokamak::print_config(config),
                  .settings = std::move(settings),
                  .startup = startup},
                 &watchdog.progress());
    open.records.or_record_end([&] {
      open.find_start();
      expect_later_rows_fit(world, backend, open);
    });
    RunEnd end = train_row(world, backend, stop, watchdog, open, sampler);
    for (; end == RunEnd::kNextRow; end = train_row(world, backend, stop, watchdog, open, sampler)) {
      open.records.or_record_end([&] { open.next_row(); });
    }
    if (world.rank() == 0) log::info(end == RunEnd::kDone ? "done" : "stopped; start again to resume");
    return end == RunEnd::kDone ? 0 : static_cast<int>(Kind::kStopped);
  }

  // A stage that does not fit into memory is an error before the first one begins.
  static void expect_later_rows_fit(World& world, Backend& backend, const OpenRun& open) {
    for (const StageRow& row : open.table.rows()) {
      if (row.first_step <= open.row().first_step) continue;
      const std::string name = str("stage '", row.options.name, "'");
      try {
        const PreparedRun planned = prepare_run(world, backend, config_of_row(open.config, row),
                                                make_row_batch(open.config, row, world.size()));
        if (world.rank() == 0) log::info(name, " is planned to take ", human_bytes(planned.planned_device_bytes()));
      } catch (const SharedError& error) {
        throw SharedError(error.kind(), str(name, ": ", error.what()), error.hint());
      }
    }
  }

  RunEnd train_row(World& world, Backend& backend, const StopSignal& stop, Watchdog& watchdog, OpenRun& open,
                   const std::optional<Sampler>& sampler) const {
    const RunConfig config = open.row_config();
    std::optional<Evaluations> evals;
    PreparedRun prepared;
    open.records.or_record_end([&] {
      collectively(world.comm(), [&] { evals = read_evals(config); });
      prepared = prepare_run(world, backend, config, make_row_batch(open.config, open.row(), world.size()));
    });
    Trainer trainer(
        world, stop, std::move(prepared), open,
        {.evals = [&](Engine& engine,
                      const std::function<void()>& between) { return flatten(evals->run(engine, between)); },
         .sampler = sampler ? &*sampler : nullptr,
         .check_changes =
             [&](const TrainingPoint& saved, const std::string& checkpoint) {
               return tokamak::check_changes(saved.config, open.config, checkpoint, saved.state.step);
             },
         .stop_at_step = stop_at_step_,
         .trace_step = trace_.step,
         .stragglers = [&watchdog] { return watchdog.take_stragglers(); }});
    RunEnd end = RunEnd::kDone;
    or_end_all(world, [&] { end = trainer.run(); });
    return end;
  }

  // Replaces sources of text by data sets made of them. Rank 0 makes those that are missing; the others sleep.
  static void tokenize_text(World& world, std::vector<SourceOptions>& sources, const RunConfig& config,
                            const StopSignal& stop, RunProgress& watched) {
    const std::string cache = text_cache(config.data, config.run.output_dir);
    for (SourceOptions& source : sources) {
      if (!value_of_rank_zero(world.comm(), [&] { return is_text_source(source); })) continue;
      const std::string data_set = text_of_rank_zero(world.comm(), [&] {
        const TextSource text = find_text_source(source, cache);
        tokenize_unless_made(source, text, stop, watched);
        return text.data_set;
      });
      collectively(world.comm(), [&] {
        if (exists(data_set + "/" + kDatasetManifest)) return;
        fail(Kind::kData,
             str("rank ", world.rank(), " on ", host_name(), " does not see ", data_set,
                 ", which rank 0 made of the text ", source.path),
             "data.cache must lie in a file system that all hosts share");
      });
      source.path = data_set;
      source.format = SourceFormat::kTokamak;
    }
  }

  static void tokenize_unless_made(const SourceOptions& source, const TextSource& text, const StopSignal& stop,
                                   RunProgress& watched) {
    if (text.is_made) {
      log::info("text ", source.path, " was tokenized before, into ", text.data_set);
      return;
    }
    log::info("tokenizing the text ", source.path, ", ", human_bytes(text.bytes), ", into ", text.data_set);
    ProgressLines lines;
    const auto report =
        make_data_set(source, text, split(version_text(), '\n').front(), [&](const TokenizeProgress& p) {
          expect_no_stop(stop);
          watched.tick();
          lines.at(p.bytes, p.total_bytes, str(", ", human_count(double(p.tokens)), " tokens"));
        });
    if (!report) return;  // another run has made it
    log::info("tokenized ", report->documents, " documents into ", report->train.tokens(), " tokens");
    if (report->empty > 0) log::warning("left out ", report->empty, " documents of only white space");
    for (const FileFaults& of : report->faults) {
      log::warning(of.path, ": ", of.faults.invalid_bytes, " bytes are not UTF-8, ", of.faults.nul_bytes, " are NUL");
    }
  }

  // Evaluations use the tokenizer of the training data, and a BOS token if its documents have one.
  static std::optional<Evaluations> read_evals(const RunConfig& config) {
    if (config.training.evals.empty()) return std::nullopt;
    const std::string& directory = config.data.sources.at(0).path;
    const Manifest data = read_first_manifest(config);
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_of(directory, data);
    if (!tokenizer) {
      fail(Kind::kConfig, str("training.evals: the data set ", directory, " has no tokenizer to read them with"));
    }
    Evaluations evaluations(config.training.evals, *tokenizer,
                            {.context = config.data.sequence_length, .add_bos = data.bos_id >= 0});
    if (evaluations.longest_generated() > 0) {
      fail(Kind::kConfig, "training.evals: a form generates texts, which a run has no memory for",
           "use tokamak eval, on a checkpoint");
    }
    return evaluations;
  }

  std::string path_;
  std::vector<std::string> overrides_;
  bool print_config_ = false;
  std::string print_value_;
  bool print_reference_ = false;
  int64_t stop_at_step_ = 0;
  CLI::Option* decay_from_ = nullptr;  // given for a run that decays
  DecayOptions decay_;
  TraceOptions trace_;
};

}  // namespace

void add_train(CLI::App& root, Commands& commands) {
  add_command<TrainCommand>(root, commands, "train", "train a model from a YAML file; resumes automatically");
}

}  // namespace tokamak::cli
