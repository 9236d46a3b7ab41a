// How a trainer starts: memory, weights, and what its state determines. The loop is in trainer.cc.
#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "model/flops.h"
#include "train/memory_check.h"
#include "train/trainer.h"
#include "train/validation.h"

namespace tokamak {

namespace {

constexpr const char* kPeakSource = "its vendor's dense peak";

void write_run_directory(const RunConfig& config, const std::string& config_text, const SampleSource& data) {
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = config.run.output_dir + "/" + name;
    if (!exists(path) || read_text(path, Kind::kConfig) != text) write_text_atomically(path, text, Kind::kConfig);
  };
  write(run_files::kConfig, config_text);
  // The run takes its tokenizer along, so that its checkpoints can be used when the data set is gone.
  const Dataset& first = data.dataset(0);
  const std::string tokenizer = data.tokenizer().path_in(first.directory());
  if (tokenizer.empty()) return;
  if (tokenizer == data.tokenizer().file) {  // another program's data, with a tokenizer of any name
    load_tokenizer_of(first.directory(), first.manifest())->copy_files(config.run.output_dir);
    return;
  }
  if (!exists(tokenizer)) return;
  for (const std::string& name : tokenizer_files(tokenizer)) {
    write(name.c_str(), read_text(first.directory() + "/" + name, Kind::kData));
  }
}

void log_run(const RunConfig& config, const OpenRun& open, const BatchShape& shape, int ranks) {
  const RunData& data = *open.data;
  const ModelSize size = model_size(config.model);
  log::info("model: ", human_count(static_cast<double>(size.parameters)), " parameters, ",
            config.model.num_hidden_layers, " layers, vocabulary ", config.model.vocab_size);
  log::info("data: ", human_count(static_cast<double>(data.train.tokens())), " tokens in ", data.train.sources(),
            " source(s), ", data.validation ? human_count(static_cast<double>(data.validation->tokens())) : "no",
            " held-out tokens, tokenizer ", data.train.tokenizer().name);
  if (data.validation) {
    const int64_t all = all_sequences(*data.validation);
    const int64_t taken = validation_sequences(config, shape, *data.validation);
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

// The whole table is in the log at level debug, and printed by `tokamak plan`.
void log_memory(const MemoryPlan& plan, int64_t program_bytes, const MemoryShare& memory, const DataMemory& data) {
  constexpr size_t kShown = 3;
  std::vector<MemoryPlan::Group> groups = plan.groups();
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::vector<std::string> largest;
  for (const MemoryPlan::Group& group : groups) {
    if (largest.size() < kShown) largest.push_back(str(group.name, " ", human_bytes(group.bytes)));
  }
  log::info("memory planned on each rank: ", human_bytes(plan.total_bytes()), " (most of it ", join(largest, ", "),
            "), besides ", human_bytes(program_bytes), " of program and libraries",
            memory.reserve > 0 ? str(" and ", human_bytes(memory.reserve), " reserved for ", kReserveIsFor) : "");
  log::debug("memory plan:\n", plan.report());
  log::debug("host memory of the data on each rank: ", data.text());
}

void append_choice(const ModelConfig& model, const AutoChoice& choice, std::vector<NamedValue>& values) {
  values.push_back(count_value("chosen/micro_batch_size", choice.micro_batch));
  values.push_back(count_value("chosen/keep_gathered", choice.keep_gathered));
  values.push_back(count_value("chosen/reduce_once", choice.reduce_once ? 1 : 0));
  const std::vector<KeptTensor> tensors = kept_tensors(model);
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.push_back(count_value("chosen/kept_layers/" + tensors[i].name, choice.kept[i]));
  }
  values.push_back({"chosen/predicted_seconds", choice.predicted_seconds});
}

// The update right before the first bad step may have damaged the weights, so its checkpoint is no good either.
std::string advice_for_bad_steps(RunCheckpoints& checkpoints, int64_t first) {
  const std::string path = checkpoints.newest_before(first - 1);
  return str("resume ", path.empty() ? "from an older checkpoint" : "with checkpoint.load=" + path,
             " and a lower optimizer.lr or training.max_grad_norm, or look at the data there");
}

}  // namespace

Trainer::Trainer(World& world, const StopSignal& stop, PreparedRun run, OpenRun& open, TrainerOptions options)
    : comm_(world.comm()),
      stop_(stop),
      options_(std::move(options)),
      run_(std::move(run)),
      open_(open),
      at_border_(open.is_at_border()),
      checkpoints_(comm_, engine(), config(), open_, [this] { checks_->verify_state(state_.step); }),
      trace_(parse_traced_steps(config().metrics.trace).value(), comm_, *engine().backend().device,
             str(config().run.output_dir, "/trace-", config().metrics.trace, ".json")),
      bad_steps_(config().resilience.max_bad_steps,
                 [this](int64_t first) { return advice_for_bad_steps(checkpoints_, first); }) {
  records().or_record_end([&] { start(); });
}

void Trainer::start() {
  if (comm_.rank() == 0) {
    log_run(config(), open_, run_.planned.shape, run_.mesh->mesh().data().size());
    log_memory(engine().plan(), run_.program_bytes, run_.memory,
               open_.data->memory(config(), run_.planned.shape.micro_batch));
  }
  engine().commit();
  const int64_t committed_bytes = engine().backend().device->used_bytes();
  if (!at_border_) open_.facts.startup.done("memory");
  const RunState state = load();
  checks_.emplace(comm_, engine(), config(), open_, checkpoints_);
  go_to(state);
  // Written last, when nothing can refuse this start any more.
  collectively(comm_, [&] {
    if (comm_.rank() != 0) return;
    try {
      write_run_directory(config(), open_.facts.config_text, open_.data->train);
    } catch (const Error& error) {
      if (state.step == 0) throw;
      log::warning(error.what(), "; the run goes on, as it would on a disk that fills later");
    }
  });
  if (!at_border_) report_ready(committed_bytes);
  if (has_rows(open_.config)) report_row();
}

RunState Trainer::load() {
  const PhaseScope phase(progress(), Phase::kLoad);
  std::vector<std::string> changes;
  const RunState state =
      checkpoints_.load_or_initialize([&](const TrainingPoint& saved, const std::string& checkpoint) {
        if (options_.check_changes) changes = options_.check_changes(saved, checkpoint);
        if (changes.empty() || comm_.rank() != 0) return;
        log::info("changed since ", checkpoint, ":\n  ", join(changes, "\n  "));
      });
  if (at_border_) return state;
  open_.facts.startup.done("load");
  records().at_step(state.step);
  if (state.step > 0) {
    RunEvent resume{"resume", str(comm_.size(), " rank(s)"), {}};
    if (!changes.empty()) resume.texts.push_back({"changed", join(changes, "; ")});
    records().event(std::move(resume));
  }
  return state;
}

void Trainer::go_to(const RunState& state) {
  // The next step's, but for a start that only makes an evaluation which is owed at the end of a row.
  const StageRow& row = *open_.table.at(std::min(state.step + 1, open_.row().last_step())).stage;
  const BatchShape& planned = run_.planned.shape;
  TOKAMAK_CHECK(row.sequences() == planned.sequences_per_step && row.options.sequence_length == planned.length,
                "memory is planned for ", planned.sequences_per_step, " sequences of ", planned.length, ", not ",
                row.sequences(), " of ", row.options.sequence_length);
  checkpoints_.go_to(state);
  state_ = state;
  loader_.reset();
  waited_ = 0;  // the records begin anew, too
  open_loader();
  reader_.emplace(engine());
  trace_.forget();
  bad_steps_.forget();
  was_finite_ = true;
  checks_->go_to(state.step);
  if (ShardStatistics* statistics = engine().statistics()) statistics->forget();
  if (ActivationStatistics* activations = engine().activation_statistics()) activations->forget();
  const Device& device = *engine().backend().device;
  const TokenFlops flops = token_flops(config().model);
  records().go_to(
      state.step,
      {.total_steps = open_.table.total_steps(),
       .last_step = open_.row().last_step(),
       .tokens_after = [&table = open_.table](int64_t step) { return table.tokens_after(step); },
       .length = [&table = open_.table](int64_t step) { return table.at(step).stage->options.sequence_length; },
       .token_flops = {.done = [flops](double attended) { return flops.done(attended); },
                       .full = [flops](double length) { return flops.full(length); },
                       .causal = [flops](double length) { return flops.causal(length); }},
       .peak_flops = device.peak_flops(compute_dtype(config().precision)) * comm_.size()},
      [&device] { return device.used_bytes(); });
}

void Trainer::open_loader() {
  if (loader_) waited_ += loader_->wait_seconds();
  loader_.emplace(open_.data->train, loader_options(state_.next_sample));
}

LoaderOptions Trainer::loader_options(int64_t first_sample) const {
  const Comm& data = run_.mesh->mesh().data();
  return {.rank = data.rank(),
          .ranks = data.size(),
          .micro_batch = run_.planned.shape.micro_batch,
          .samples_per_step = run_.planned.shape.sequences_per_step,
          .document_masking = config().data.document_masking,
          .first_sample = first_sample};
}

void Trainer::report_ready(int64_t committed_bytes) {
  const Device& device = *engine().backend().device;
  const double peak_flops = device.peak_flops(compute_dtype(config().precision));  // 0 on a CPU, which has no MFU
  if (comm_.rank() == 0 && peak_flops > 0) {
    log::info("MFU is against ", human_si(peak_flops * comm_.size(), "FLOP/s"), ": ", kPeakSource, ", times the ranks");
  }
  open_.facts.startup.done("loader");
  std::vector<NamedValue> values = open_.facts.startup.values();
  if (peak_flops > 0) values.push_back({"peak/flops", peak_flops});
  const RunTable& table = open_.table;
  values.push_back(count_value("total_steps", table.total_steps()));
  values.push_back(count_value("total_tokens", table.tokens_after(table.total_steps())));
  values.push_back(count_value("tokens_per_step", run_.planned.shape.tokens_per_step()));
  values.push_back(count_value("memory/planned", run_.planned_device_bytes()));
  values.push_back(count_value("memory/committed", committed_bytes));
  if (run_.choice) append_choice(config().model, *run_.choice, values);
  std::vector<NamedText> texts = {{"device", device.description()}};
  if (peak_flops > 0) texts.push_back({"peak", kPeakSource});
  records().event({"ready", "", std::move(texts)}, std::move(values));
}

// For the report, which has a row for each.
void Trainer::report_row() {
  const StageRow& row = open_.row();
  const StageOptions& stage = row.options;
  if (comm_.rank() == 0) {
    log::info("stage '", stage.name, "': steps ", row.first_step, " to ", row.last_step(), ", ", row.sequences(),
              " sequences of ", stage.sequence_length, " = ", stage.global_batch_tokens, " tokens a step");
  }
  records().event({"stage", stage.name, {}},
                  {count_value("stage/first_step", row.first_step), count_value("stage/last_step", row.last_step()),
                   count_value("stage/sequence_length", stage.sequence_length),
                   count_value("stage/tokens_per_step", stage.global_batch_tokens),
                   count_value("stage/micro_batch", run_.planned.shape.micro_batch),
                   count_value("stage/memory_planned", run_.planned_device_bytes())});
}

}  // namespace tokamak
