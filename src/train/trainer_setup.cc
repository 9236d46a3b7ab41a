// How a run starts: data, directory, memory, weights. The loop is in trainer.cc.
#include "base/file.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "model/flops.h"
#include "train/memory_check.h"
#include "train/peak.h"
#include "train/trainer.h"

namespace tokamak {

namespace {

void write_run_directory(const RunConfig& config, const std::string& config_text, const SampleSource& data) {
  write_text_atomically(config.run.output_dir + "/config.yaml", config_text, Kind::kConfig);
  // The run takes its tokenizer along, so that its checkpoints can be used when the data set is gone.
  const std::string tokenizer = data.dataset(0).directory() + "/" + data.tokenizer().file;
  if (data.tokenizer().file.empty() || !exists(tokenizer)) return;
  write_text_atomically(config.run.output_dir + "/tokenizer.model", read_text(tokenizer, Kind::kData), Kind::kConfig);
}

void log_run(const RunConfig& config, const RunData& data, const BatchShape& shape, int ranks) {
  const ModelSize size = model_size(config.model);
  log::info("model: ", human_count(static_cast<double>(size.parameters)), " parameters, ",
            config.model.num_hidden_layers, " layers, vocabulary ", config.model.vocab_size);
  log::info("data: ", human_count(static_cast<double>(data.train.tokens())), " tokens in ", data.train.sources(),
            " source(s), ", data.validation ? human_count(static_cast<double>(data.validation->tokens())) : "no",
            " held-out tokens, tokenizer ", data.train.tokenizer().name);
  log::info("batch: ", shape.sequences_per_step, " sequences of ", shape.length, " = ",
            human_count(static_cast<double>(shape.tokens_per_step())), " tokens a step, ", ranks, " rank(s) x ",
            shape.micro_batches(), " micro-batch(es) of ", shape.micro_batch, "; ", shape.total_steps,
            " steps = ", human_count(static_cast<double>(shape.total_steps * shape.tokens_per_step())), " tokens");
}

void log_memory(const MemoryPlan& plan, int64_t program_bytes, const MemoryShare& memory) {
  log::info("memory planned on each rank, besides ", human_bytes(program_bytes), " of program and libraries",
            memory.reserve > 0 ? str(" and ", human_bytes(memory.reserve), " reserved for ", kReserveIsFor) : "", ":\n",
            plan.report());
}

}  // namespace

Trainer::Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options)
    : comm_(world.comm()),
      stop_(stop),
      config_(std::move(config)),
      options_(std::move(options)),
      bad_steps_(config_.resilience.max_bad_steps) {
  GlobalBatch batch;
  collectively(comm_, [&] { batch = make_global_batch(config_.training, config_.data, comm_.size()); });
  collectively(comm_, [&] {
    data_.emplace(config_, batch);
    schedule_.emplace(config_.lr_scheduler, config_.optimizer.lr, batch.total_steps, batch.tokens_per_step());
  });
  collectively(comm_, [&] { make_directories(config_.run.output_dir, Kind::kConfig); });
  checkpoints_.emplace(comm_, config_);
  const int64_t committed_bytes = take_memory(world, backend, batch);
  {
    const PhaseScope phase(options_.progress, Phase::kLoad);
    state_ = checkpoints_->load_or_initialize(*run_.engine, data_->train, batch, config_.run.seed);
  }
  // Only now that nothing can refuse this start: another run may be living in the directory until then.
  collectively(comm_, [&] {
    if (comm_.rank() == 0) write_run_directory(config_, options_.config_text, data_->train);
  });
  loader_.emplace(data_->train, LoaderOptions{.rank = comm_.rank(),
                                              .ranks = comm_.size(),
                                              .micro_batch = run_.shape.micro_batch,
                                              .samples_per_step = run_.shape.sequences_per_step,
                                              .document_masking = config_.data.document_masking,
                                              .first_sample = state_.next_sample});
  reader_.emplace(*run_.engine);
  trace_.emplace(parse_traced_steps(config_.metrics.trace).value(), comm_, *backend.device,
                 str(config_.run.output_dir, "/trace-", config_.metrics.trace, ".json"));
  start_monitor(committed_bytes);
}

Trainer::~Trainer() = default;

int64_t Trainer::take_memory(World& world, Backend& backend, const GlobalBatch& batch) {
  // Before memory is measured: it takes some.
  data_comm_ = make_data_comm(comm_, *backend.device, config_.runtime, config_.precision.reduce);
  const MemoryShare memory = memory_share(*backend.device, world, *data_comm_, config_.runtime);
  collectively(comm_, [&] {
    const int64_t program_bytes = backend.device->used_bytes();
    run_ = plan_run(config_, batch, *data_comm_, backend, memory.total);
    const MemoryPlan& plan = run_.engine->plan();
    planned_bytes_ = planned_bytes(plan, *backend.device) + program_bytes;
    expect_fit(plan, *backend.device, memory, config_, run_.shape.micro_batch);
    if (comm_.rank() != 0) return;
    log_run(config_, *data_, run_.shape, comm_.size());
    log_memory(plan, program_bytes, memory);
  });
  run_.engine->commit();  // talks to the other ranks, so on its own
  return backend.device->used_bytes();
}

void Trainer::start_monitor(int64_t committed_bytes) {
  Backend& backend = run_.engine->backend();
  // All ranks measure at the same time, as they will train at the same time.
  const Peak peak = peak_of(backend, compute_dtype(config_.precision));
  const double peak_flops = peak.flops * comm_.size();
  collectively(comm_, [&] {
    const bool reports = comm_.rank() == 0;
    monitor_.emplace(Monitor::Setup{
        .scale = {.first_step = state_.step,
                  .total_steps = run_.shape.total_steps,
                  .tokens_per_step = run_.shape.tokens_per_step(),
                  .token_flops = [flops = token_flops(config_.model)](double attended) { return flops.done(attended); },
                  .sequence_length = static_cast<double>(run_.shape.length),
                  .peak_flops = peak_flops},
        .log_interval = config_.metrics.log_interval,
        .memory_used = [&device = *backend.device] { return device.used_bytes(); },
        .sinks = reports ? make_sinks(config_.metrics, config_.run.output_dir, run_.shape.total_steps) : Sinks()});
    monitor_->event(state_.step > 0 ? "resume" : "start", state_.step, str(comm_.size(), " rank(s)"),
                    {count_value("memory/planned", planned_bytes_), count_value("memory/committed", committed_bytes)});
    if (reports) log::info("MFU is against ", human_count(peak_flops), "FLOP/s: ", peak.source, ", times the ranks");
  });
}

}  // namespace tokamak
