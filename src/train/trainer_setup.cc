// How a run starts: data, directory, memory, weights. The loop is in trainer.cc.
#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/rank_zero.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "model/flops.h"
#include "train/evaluator.h"
#include "train/memory_check.h"
#include "train/start_event.h"
#include "train/trainer.h"

namespace tokamak {

namespace {

void write_run_directory(const RunConfig& config, const std::string& config_text, const SampleSource& data) {
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = config.run.output_dir + "/" + name;
    if (!exists(path) || read_text(path, Kind::kConfig) != text) write_text_atomically(path, text, Kind::kConfig);
  };
  write("config.yaml", config_text);
  // The run takes its tokenizer along, so that its checkpoints can be used when the data set is gone.
  const std::string tokenizer = data.dataset(0).directory() + "/" + data.tokenizer().file;
  if (data.tokenizer().file.empty() || !exists(tokenizer)) return;
  write("tokenizer.model", read_text(tokenizer, Kind::kData));
}

void log_run(const RunConfig& config, const RunData& data, const BatchShape& shape, int ranks) {
  const ModelSize size = model_size(config.model);
  log::info("model: ", human_count(static_cast<double>(size.parameters)), " parameters, ",
            config.model.num_hidden_layers, " layers, vocabulary ", config.model.vocab_size);
  log::info("data: ", human_count(static_cast<double>(data.train.tokens())), " tokens in ", data.train.sources(),
            " source(s), ", data.validation ? human_count(static_cast<double>(data.validation->tokens())) : "no",
            " held-out tokens, tokenizer ", data.train.tokenizer().name);
  if (data.validation) {
    const int64_t all = Evaluator::all_sequences(*data.validation);
    const int64_t taken = validation_sequences(config.training, shape, *data.validation);
    log::info("validation: ", taken == all ? str("all ", all) : str("the first ", taken, " of ", all),
              " held-out sequences");
  }
  for (const std::string& one : data.trained_on()) {
    log::warning(one, ": the run trains on it, so validation/loss says nothing of other text");
  }
  log::info("batch: ", shape.sequences_per_step, " sequences of ", shape.length, " = ",
            human_count(static_cast<double>(shape.tokens_per_step())), " tokens a step, ", ranks, " rank(s) x ",
            shape.micro_batches(), " micro-batch(es) of ", shape.micro_batch, "; ", shape.total_steps,
            " steps = ", human_count(static_cast<double>(shape.total_steps * shape.tokens_per_step())), " tokens");
}

// The table is for those who ask for it: `tokamak plan`, and the log at level debug.
void log_memory(const MemoryPlan& plan, int64_t program_bytes, int64_t measuring, const MemoryShare& memory) {
  constexpr size_t kShown = 3;
  std::vector<MemoryPlan::Group> groups = plan.groups();
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::vector<std::string> largest;
  for (const MemoryPlan::Group& group : groups) {
    if (largest.size() < kShown) largest.push_back(str(group.name, " ", human_bytes(group.bytes)));
  }
  log::info("memory planned on each rank: ", human_bytes(plan.total_bytes()), " (most of it ", join(largest, ", "),
            "), besides ", human_bytes(program_bytes), " of program and libraries",
            memory.reserve > 0 ? str(" and ", human_bytes(memory.reserve), " reserved for ", kReserveIsFor) : "",
            measuring > plan.total_bytes() ? str(" and ", human_bytes(measuring), " that a GEMM was measured in") : "");
  log::debug("memory plan:\n", plan.report());
}

bool waits_for_disk(Phase phase) { return phase == Phase::kLoad || phase == Phase::kSave || phase == Phase::kStop; }

void append_choice(const AutoChoice& choice, std::vector<NamedValue>& values) {
  values.push_back(count_value("chosen/micro_batch_size", choice.micro_batch));
  values.push_back(count_value("chosen/keep_gathered", choice.keep_gathered));
  values.push_back(count_value("chosen/reduce_once", choice.reduce_once ? 1 : 0));
  for (const KeptTensor tensor : kKeptTensors) {
    values.push_back(count_value(str("chosen/kept_layers/", name_of(tensor)), choice.kept[tensor]));
  }
  values.push_back({"chosen/predicted_seconds", choice.predicted_seconds});
}

}  // namespace

Trainer::Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options)
    : comm_(world.comm()),
      stop_(stop),
      config_(std::move(config)),
      options_(std::move(options)),
      bad_steps_(config_.resilience.max_bad_steps, [this](int64_t first) { return advice_for_bad_steps(first); }),
      startup_(options_.startup) {
  GlobalBatch batch;
  collectively(comm_, [&] {
    replicas_of(config_.parallelism, comm_.size());  // refused before anything is made
    batch = make_global_batch(config_.training, config_.data, comm_.size());
  });
  collectively(comm_, [&] {
    data_.emplace(config_, batch);
    schedule_.emplace(config_.lr_scheduler, config_.optimizer.lr, batch.total_steps, batch.tokens_per_step());
  });
  startup_.done("data");
  collectively(comm_, [&] { make_directories(config_.run.output_dir, Kind::kConfig); });
  checkpoints_.emplace(comm_, config_, [progress = options_.progress] {
    // Beside training the disk's progress is none of the run's: it would hide that a step hangs.
    if (progress != nullptr && waits_for_disk(progress->phase())) progress->tick();
  });
  log::also_to(config_.run.output_dir + "/train.log");  // locked: no other run's
  startup_.done("lock");
  open_records(world, batch.total_steps);
  or_record_end([&] { start(world, backend, batch); });
}

Trainer::~Trainer() = default;

// The directory is locked: its records are this run's. What comes now may take long or fail, and then they say so.
void Trainer::open_records(World& world, int64_t total_steps) {
  const std::string hosts = all_hosts(comm_);
  collectively(comm_, [&] {
    const RunFacts run = {.name = config_.run.name,
                          .output_dir = config_.run.output_dir,
                          .config_text = options_.config_text,
                          .settings = options_.settings,
                          .total_steps = total_steps};
    recorder_.emplace(comm_.rank() == 0 ? make_sinks(config_.metrics, run) : Sinks());
  });
  recorder_->write(start_record({.exec_time = startup_.begin_time(),
                                 .incarnation = checkpoints_->incarnation(),
                                 .ranks = comm_.size(),
                                 .hosts = hosts,
                                 .program = options_.program,
                                 .command = options_.command},
                                [](const char* name) { return std::getenv(name); }));
  const std::string incarnation = run_on_rank_zero(comm_, [&] { return checkpoints_->incarnation(); });
  last_words_.emplace(world.watch(), LastWords::Run{.rank = comm_.rank(),
                                                    .output_dir = config_.run.output_dir,
                                                    .incarnation = incarnation,
                                                    .records = config_.run.output_dir + "/metrics.jsonl",
                                                    .total_steps = total_steps,
                                                    .flush = [this] { recorder_->flush(); }});
}

std::vector<std::string> Trainer::load_state(const GlobalBatch& batch) {
  std::vector<std::string> changes;
  state_ = checkpoints_->load_or_initialize(*run_.engine, data_->train, batch, config_.run.seed,
                                            [&](const std::string& saved, const std::string& checkpoint) {
                                              if (options_.check_changes)
                                                changes = options_.check_changes(saved, checkpoint);
                                              if (!changes.empty() && comm_.rank() == 0) {
                                                log::info("changed since ", checkpoint, ":\n  ", join(changes, "\n  "));
                                              }
                                            });
  const std::string status = run_on_rank_zero(comm_, [&] {
    const std::optional<RunStatus> before = read_run_status(config_.run.output_dir);
    return before && before->state == RunStatus::State::kDone && before->step == state_.step ? "done" : "";
  });
  was_done_ = finished() && status == "done";
  last_words_->at_step(state_.step);
  return changes;
}

void Trainer::start(World& world, Backend& backend, const GlobalBatch& batch) {
  const int64_t committed_bytes = take_memory(world, backend, batch);
  startup_.done("memory");
  std::vector<std::string> changes;
  {
    const PhaseScope phase(options_.progress, Phase::kLoad);
    changes = load_state(batch);
  }
  startup_.done("load");
  if (state_.step > 0) {
    RunEvent resume{"resume", str(comm_.size(), " rank(s)"), {}};
    if (!changes.empty()) resume.texts.push_back({"changed", join(changes, "; ")});
    recorder_->event(state_.step, std::move(resume));
  }
  // Only now that nothing can refuse this start: another run may be living in the directory until then.
  collectively(comm_, [&] {
    if (comm_.rank() != 0) return;
    try {
      write_run_directory(config_, options_.config_text, data_->train);
    } catch (const Error& error) {
      if (state_.step == 0) throw;
      log::warning(error.what(), "; the run goes on, as it would on a disk that fills later");
    }
  });
  loader_.emplace(data_->train, loader_options());
  reader_.emplace(*run_.engine);
  start_checks();
  trace_.emplace(parse_traced_steps(config_.metrics.trace).value(), comm_, *backend.device,
                 str(config_.run.output_dir, "/trace-", config_.metrics.trace, ".json"));
  start_monitor(committed_bytes);
}

LoaderOptions Trainer::loader_options() const {
  return {.rank = comm_.rank(),
          .ranks = comm_.size(),
          .micro_batch = run_.shape.micro_batch,
          .samples_per_step = run_.shape.sequences_per_step,
          .document_masking = config_.data.document_masking,
          .first_sample = state_.next_sample};
}

void Trainer::settle(World& world, const Device& device, const GlobalBatch& batch, const MemoryShare& memory) {
  TOKAMAK_CHECK(options_.chooser, "a config with auto keys and nothing that chooses");
  const ChoiceInputs inputs{.config = config_,
                            .batch = batch,
                            .ranks = comm_.size(),
                            .ranks_per_node = world.local_size(),
                            .device = device.description(),
                            .total = memory.total,
                            .available = memory.available};
  choice_ = choose_on_rank_zero(comm_, inputs, options_.chooser);
  if (comm_.rank() == 0) log::info("chosen: ", text_of(config_, *choice_), "; ", choice_->why);
  config_ = with_choice(config_, *choice_);
}

int64_t Trainer::take_memory(World& world, Backend& backend, const GlobalBatch& batch) {
  // Before memory is measured: it takes some.
  data_comm_ = make_data_comm(comm_, *backend.device, config_.runtime, config_.precision.reduce);
  mesh_.emplace(*data_comm_, replicas_of(config_.parallelism, comm_.size()));
  const PeakOptions measured = peak_options(config_);
  if (backend.device->uses_host_memory()) {
    // While the plan's memory is not taken yet: this memory is given back, and what the libraries keep counts as theirs.
    // All ranks measure at the same time, as they will train at the same time.
    peak_ = peak_of(backend, measured);
    startup_.done("peak");
  }
  const MemoryShare memory = memory_share(*backend.device, world, mesh_->mesh(), config_.runtime);
  if (leaves_choice(config_)) settle(world, *backend.device, batch, memory);
  collectively(comm_, [&] {
    const int64_t program_bytes = backend.device->used_bytes();
    run_ = plan_run(config_, batch, mesh_->mesh(), backend, PlanFor::kTraining, memory.total, memory.available);
    const MemoryPlan& plan = run_.engine->plan();
    const int64_t measuring = peak_ ? peak_measurement_bytes(*backend.device, measured) : 0;
    planned_bytes_ = std::max(planned_bytes(plan, *backend.device), measuring) + program_bytes;
    expect_fit(plan, *backend.device, memory, config_, run_.shape.micro_batch);
    if (comm_.rank() != 0) return;
    log_run(config_, *data_, run_.shape, comm_.size());
    log_memory(plan, program_bytes, measuring, memory);
  });
  run_.engine->commit();  // talks to the other ranks, so on its own
  return backend.device->used_bytes();
}

void Trainer::or_record_end(const std::function<void()>& body) {
  try {
    body();
  } catch (const SharedError& error) {
    if (monitor_) finish_save();  // what it holds is as good as before; all ranks are here
    record_end(RunStatus::State::kFailed, error.what(), error.exit_code());
    throw;
  } catch (const Error& error) {
    record_end(RunStatus::State::kFailed, error.what(), error.exit_code());
    throw;
  } catch (const std::exception& error) {
    record_end(RunStatus::State::kFailed, error.what(), static_cast<int>(Kind::kBug));
    throw;
  }
}

void Trainer::record_end(RunStatus::State state, const std::string& detail, int code) {
  last_words_->forget();
  recorder_->event(state_.step, {"end", detail, {}}, {count_value("exit_code", code)});
  recorder_->flush();  // an error on one rank ends this process where it stands
  write_status(state, code, state == RunStatus::State::kFailed ? detail : "");
}

void Trainer::start_monitor(int64_t committed_bytes) {
  Backend& backend = run_.engine->backend();
  const bool measured = peak_.has_value();
  if (!measured) {
    startup_.done("loader");
    peak_ = peak_of(backend, peak_options(config_));  // a GPU's GEMM works in the run's scratch memory
  }
  const bool has_mfu = reports_mfu(config_, *backend.device);
  collectively(comm_, [&] {
    if (comm_.rank() == 0 && peak_->flops > 0) {  // which is the one that reports
      peak_ = best_peak(config_.run.output_dir + "/metrics.jsonl", *peak_, *backend.device, comm_.size());
    }
    const double peak_flops = has_mfu ? peak_->flops * comm_.size() : 0;
    monitor_.emplace(Monitor::Setup{
        .scale = {.first_step = state_.step,
                  .total_steps = run_.shape.total_steps,
                  .tokens_per_step = run_.shape.tokens_per_step(),
                  .token_flops = [flops = token_flops(config_.model)](double attended) { return flops.done(attended); },
                  .sequence_length = static_cast<double>(run_.shape.length),
                  .peak_flops = peak_flops},
        .log_interval = config_.metrics.log_interval,
        .memory_used = [&device = *backend.device] { return device.used_bytes(); },
        .recorder = *recorder_});
    if (comm_.rank() == 0 && has_mfu)
      log::info("MFU is against ", human_si(peak_flops, "FLOP/s"), ": ", peak_->source, ", times the ranks");
  });
  startup_.done(measured ? "loader" : "peak");
  std::vector<NamedValue> values = startup_.values();
  if (peak_->flops > 0) values.push_back({"peak/flops", peak_->flops});
  if (peak_->memory_rate > 0) values.push_back({"peak/memory_rate", peak_->memory_rate});
  values.push_back(count_value("total_steps", run_.shape.total_steps));
  values.push_back(count_value("tokens_per_step", run_.shape.tokens_per_step()));
  values.push_back(count_value("memory/planned", planned_bytes_));
  values.push_back(count_value("memory/committed", committed_bytes));
  if (choice_) append_choice(*choice_, values);
  std::vector<NamedText> texts = {{"device", backend.device->description()}};
  if (peak_->flops > 0) texts.push_back({"peak", peak_->source});
  recorder_->event(state_.step, {"ready", "", std::move(texts)}, std::move(values));
}

}  // namespace tokamak
