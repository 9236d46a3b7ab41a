// How a run starts: data, directory, memory, weights. The loop is in trainer.cc.
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "model/flops.h"
#include "train/memory_check.h"
#include "train/peak.h"
#include "train/run_plan.h"
#include "train/state_slices.h"
#include "train/trainer.h"

namespace tokamak {

Trainer::Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options)
    : world_(world),
      comm_(world.comm()),
      backend_(backend),
      stop_(stop),
      config_(std::move(config)),
      options_(std::move(options)),
      bad_steps_(config_.resilience.max_bad_steps) {
  GlobalBatch batch;
  collectively(comm_, [&] { batch = make_global_batch(config_.training, config_.data, comm_.size()); });
  collectively(comm_, [&] { open_data(batch); });
  collectively(comm_, [&] { make_directories(config_.run.output_dir, Kind::kConfig); });
  checkpointer_.emplace(comm_, checkpoint_directory(), Checkpointer::Setup{checkpoint_options()});
  // Before memory is measured: it takes some.
  data_comm_ = make_data_comm(comm_, *backend_.device, config_.runtime, config_.precision.reduce);
  const MemoryShare memory = memory_share(*backend_.device, world_, *data_comm_, config_.runtime);
  collectively(comm_, [&] { build(batch, memory); });
  assembly_->commit();  // talks to the other ranks, so on its own
  committed_bytes_ = backend_.device->used_bytes();
  collectively(comm_, [&] { host_state_.emplace(*assembly_); });
  load_or_initialize();
  collectively(comm_, [&] { write_run_directory(); });
  start_monitor();
}

Trainer::~Trainer() = default;

std::string Trainer::checkpoint_directory() const { return config_.run.output_dir + "/checkpoints"; }

// A run that began from another run's checkpoint has its own soon, and goes on from those when it is started again.
CheckpointOptions Trainer::checkpoint_options() const {
  CheckpointOptions options = config_.checkpoint;
  if (options.load == "auto" || options.load == "none") return options;
  const CheckpointStore own(checkpoint_directory());
  const bool from_elsewhere = parent_directory(options.load) != own.directory();
  const bool has_own = comm_.max(comm_.rank() == 0 && !own.steps().empty()) > 0;
  if (from_elsewhere && has_own) options.load = "auto";
  return options;
}

void Trainer::open_data(const GlobalBatch& batch) {
  train_data_.emplace(config_.data, config_.data.sources, config_.run.seed, config_.model.vocab_size);
  train_data_->check_epochs(batch.total_steps * batch.sequences_per_step, config_.data.max_epochs);
  schedule_.emplace(config_.lr_scheduler, config_.optimizer.lr, batch.total_steps, batch.tokens_per_step());
  if (config_.data.validation.empty()) return;

  DataOptions in_order = config_.data;
  in_order.order = SampleOrder::kSequential;
  validation_data_.emplace(in_order, config_.data.validation, config_.run.seed, config_.model.vocab_size);
  if (validation_data_->tokenizer().hash != train_data_->tokenizer().hash) {
    fail(Kind::kData,
         str("data.validation ", config_.data.validation[0].path, " was made with tokenizer ",
             validation_data_->tokenizer().hash, ", data.sources ", config_.data.sources[0].path, " with ",
             train_data_->tokenizer().hash),
         "tokenize both with the same tokenizer.model");
  }
}

// Only now that nothing can refuse this start: another run may be living in the directory until then.
void Trainer::write_run_directory() {
  if (comm_.rank() != 0) return;
  write_text_atomically(config_.run.output_dir + "/config.yaml", options_.config_text, Kind::kConfig);
  // The run takes its tokenizer along, so that its checkpoints can be used when the data set is gone.
  const Dataset& dataset = train_data_->dataset(0);
  const std::string tokenizer = dataset.directory() + "/" + train_data_->tokenizer().file;
  if (train_data_->tokenizer().file.empty() || !exists(tokenizer)) return;
  write_text_atomically(config_.run.output_dir + "/tokenizer.model", read_text(tokenizer, Kind::kData), Kind::kConfig);
}

void Trainer::build(const GlobalBatch& batch, const MemoryShare& memory) {
  program_bytes_ = backend_.device->used_bytes();
  PlannedRun run = plan_run(config_, batch, *data_comm_, backend_, memory.total);
  shape_ = run.shape;
  assembly_ = std::move(run.assembly);
  expect_fit(assembly_->plan(), *backend_.device, memory, config_, shape_.micro_batch);
  if (validation_data_) {
    evaluator_.emplace(*validation_data_, config_.training.validation_sequences, shape_.micro_batch,
                       config_.data.document_masking);
  }
  if (comm_.rank() != 0) return;
  const ModelSize size = model_size(config_.model);
  log::info("model: ", human_count(static_cast<double>(size.parameters)), " parameters, ",
            config_.model.num_hidden_layers, " layers, vocabulary ", config_.model.vocab_size);
  log::info("data: ", human_count(static_cast<double>(train_data_->tokens())), " tokens in ", train_data_->sources(),
            " source(s), ", validation_data_ ? human_count(static_cast<double>(validation_data_->tokens())) : "no",
            " held-out tokens, tokenizer ", train_data_->tokenizer().name);
  log::info("batch: ", shape_.sequences_per_step, " sequences of ", shape_.length, " = ",
            human_count(static_cast<double>(shape_.tokens_per_step())), " tokens a step, ", comm_.size(), " rank(s) x ",
            shape_.micro_batches(), " micro-batch(es) of ", shape_.micro_batch, "; ", shape_.total_steps,
            " steps = ", human_count(static_cast<double>(shape_.total_steps * shape_.tokens_per_step())), " tokens");
  log::info("memory planned on each rank, besides ", human_bytes(program_bytes_), " of program and libraries",
            memory.reserve > 0 ? str(" and ", human_bytes(memory.reserve), " reserved for ", kReserveIsFor) : "", ":\n",
            assembly_->plan().report());
}

void Trainer::load_or_initialize() {
  std::optional<CheckpointReader> reader = checkpointer_->resume();
  if (!reader) {
    assembly_->parameters().initialize(static_cast<uint64_t>(config_.run.seed), assembly_->compute());
    if (comm_.rank() == 0) log::info("weights: initialised from run.seed ", config_.run.seed);
    return;
  }
  const TrainingPoint& point = reader->manifest().point;
  collectively(comm_, [&] {
    state_ = point.state;
    state_.next_sample = train_data_->restore(point.data);
  });
  load(comm_, *reader, shard_place(comm_), host_state_->slices());
  host_state_->push();
  assembly_->parameters().masters_changed(assembly_->compute());
  if (point.state.tokens != point.state.step * shape_.tokens_per_step()) {
    throw SharedError(Kind::kConfig,
                      str("training.global_batch_tokens is ", shape_.tokens_per_step(), ", but ", reader->directory(),
                          " has ", point.state.tokens, " tokens after ", point.state.step, " steps"),
                      "go on with the batch that the run began with");
  }
  if (reader->directory() == checkpointer_->store().path_of(state_.step)) saved_step_ = state_.step;  // else: another's
  tokens_saved_ = state_.tokens;
  if (comm_.rank() == 0) {
    log::info("weights: resumed from ", reader->directory(), " (step ", state_.step, ", ",
              human_count(static_cast<double>(state_.tokens)), " tokens, saved by ", reader->manifest().world_size,
              " rank(s))");
  }
}

void Trainer::start_monitor() {
  loader_.emplace(*train_data_, LoaderOptions{.rank = comm_.rank(),
                                              .ranks = comm_.size(),
                                              .micro_batch = shape_.micro_batch,
                                              .samples_per_step = shape_.sequences_per_step,
                                              .document_masking = config_.data.document_masking,
                                              .first_sample = state_.next_sample});
  reader_.emplace(*assembly_);
  // All ranks measure at the same time, as they will train at the same time.
  const Peak peak = peak_of(backend_, compute_dtype(config_.precision));
  const double peak_flops = peak.flops * comm_.size();
  collectively(comm_, [&] {
    const bool reports = comm_.rank() == 0;
    monitor_.emplace(Monitor::Setup{
        .scale = {.first_step = state_.step,
                  .total_steps = shape_.total_steps,
                  .tokens_per_step = shape_.tokens_per_step(),
                  .token_flops = [flops = token_flops(config_.model)](double attended) { return flops.done(attended); },
                  .sequence_length = static_cast<double>(shape_.length),
                  .peak_flops = peak_flops},
        .log_interval = config_.metrics.log_interval,
        .memory_used = [&device = *backend_.device] { return device.used_bytes(); },
        .sinks = reports ? make_sinks(config_.metrics, config_.run.output_dir, shape_.total_steps) : Sinks()});
    monitor_->event(
        state_.step > 0 ? "resume" : "start", state_.step, str(comm_.size(), " rank(s)"),
        {count_value("memory/planned", planned_with_program()), count_value("memory/committed", committed_bytes_)});
    if (reports) log::info("MFU is against ", human_count(peak_flops), "FLOP/s: ", peak.source, ", times the ranks");
  });
}

}  // namespace tokamak
