// tokamak eval: evaluates a checkpoint or a Hugging Face model on benchmarks and texts.
#include <algorithm>
#include <iostream>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/eval_report.h"
#include "cli/model_source.h"
#include "cli/option_values.h"
#include "cli/run_context.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

class EvalCommand : public Command {
 public:
  explicit EvalCommand(CLI::App* parser) : Command(parser) {
    parser->add_option("--checkpoint", checkpoint_,
                       "a checkpoint, or a directory of them, whose newest that verifies is used");
    parser->add_option("--model", model_, "a Hugging Face directory: config.json, safetensors, tokenizer.model");
    parser->add_option("--tokenizer", tokenizer_,
                       "SentencePiece model; default: tokenizer.model of the run or of the model's directory");
    parser
        ->add_option("--task", tasks_,
                     str("KIND=FILE or KIND/NAME=FILE, may be given several times; KIND is one of ",
                         join(enum_names(EvalKind{}), ", "), ": questions as JSON lines, text as .txt or .jsonl"))
        ->required()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->add_option("--limit", limit_, "only the first items of each task; 0: all")->capture_default_str();
    bos_given_ = parser->add_flag("--bos,!--no-bos", encoding_.add_bos,
                                  "prepend the BOS token to each text, as `data tokenize --bos`; default: as in "
                                  "tokenizer_config.json; off for a checkpoint");
    parser
        ->add_option("--context", encoding_.context,
                     "maximum tokens that the model sees; 0: model.max_position_embeddings")
        ->capture_default_str();
    parser->add_option("--batch-tokens", batch_tokens_, "tokens of a micro-batch; 0: 4096, or the context if longer")
        ->capture_default_str();
    parser->add_option("--dtype", dtype_, "f32 or bf16; default: that of the run, or of the weights")
        ->check(CLI::IsMember(enum_names(Precision{})));
    parser->add_option("--backend", backend_, "auto, cpu or cuda; default: as in the run's config")
        ->check(CLI::IsMember(enum_names(BackendKind{})));
    parser->add_option("--threads", threads_, "CPU threads of each rank; 0: its share of the cores")
        ->capture_default_str();
    parser->add_option("--output", output_, "write one JSON object with all results to this file");
    parser->add_option("--samples", samples_, "write the log-likelihoods of each item to this file, as JSON lines");
    parser->footer(
        "Rules and wording are those of lm-evaluation-harness 0.4, zero-shot; the files are its data sets' JSON "
        "lines.\n\n"
        "  tokamak eval --checkpoint runs/mine/checkpoints --task hellaswag=hellaswag_val.jsonl --output results.json\n"
        "  mpirun -n 4 tokamak eval --model mine-hf --task arc/easy=arc_easy.jsonl --task text=held_out.jsonl");
  }

  int run() override {
    return run_in_world([this](World& world) {
      EvalReport report;
      or_end_all(world, [&] { report = evaluate(world); });
      if (world.rank() != 0) return 0;
      std::cout << eval_table(report);
      if (!output_.empty()) write_text_atomically(output_, eval_json(report), Kind::kConfig);
      if (!samples_.empty()) write_text_atomically(samples_, eval_samples(report.results), Kind::kConfig);
      return 0;
    });
  }

 private:
  EvalReport evaluate(World& world) {
    std::unique_ptr<ModelSource> source;
    std::optional<Evaluations> evaluations;
    collectively(world.comm(), [&] { source = open_model_source(world.comm(), checkpoint_, model_); });
    collectively(world.comm(), [&] { evaluations = read_tasks(*source); });
    RunConfig config = source->config();

    if (!dtype_.empty()) config.precision.compute = enum_from_name<Precision>(dtype_);
    if (!backend_.empty()) config.runtime.backend = enum_from_name<BackendKind>(backend_);
    config.runtime.threads_per_rank.value = threads_;
    Backend backend = make_backend_collectively(world, config.runtime);
    const std::unique_ptr<Comm> data_comm = make_data_comm(world.comm(), *backend.device, config.runtime);
    const EngineSizes sizes{
        .max_tokens = std::max<int64_t>(batch_tokens_ > 0 ? batch_tokens_ : 4096, encoding_.context),
        .max_length = encoding_.context,
        .training = false};
    Engine engine(engine_options(config, sizes), *data_comm, backend);
    engine.commit();
    fill(engine, *source);
    return {.weights = checkpoint_.empty() ? model_ : checkpoint_,
            .tokenizer = tokenizer_,
            .dtype = enum_name(config.precision.compute),
            .context = encoding_.context,
            .add_bos = encoding_.add_bos,
            .ranks = world.size(),
            .results = evaluations->run(engine, [] {})};
  }

  Evaluations read_tasks(const ModelSource& source) {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_for(source, tokenizer_);
    tokenizer_ = tokenizer->path();
    if (bos_given_->count() == 0) encoding_.add_bos = source.adds_bos();
    if (encoding_.context < 0 || limit_ < 0 || batch_tokens_ < 0) {
      fail(Kind::kConfig, "--context, --limit and --batch-tokens must not be negative");
    }
    if (encoding_.context == 0) encoding_.context = source.config().model.max_position_embeddings;
    std::vector<EvalOptions> tasks;
    for (const std::string& task : tasks_) tasks.push_back(parse_task(task));
    return Evaluations(tasks, *tokenizer, encoding_);
  }

  // KIND=FILE, KIND/NAME=FILE
  EvalOptions parse_task(const std::string& text) const {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string kind = name.substr(0, name.find('/'));
    const std::vector<std::string>& kinds = enum_names(EvalKind{});
    if (equals == std::string::npos || equals + 1 == text.size()) {
      fail(Kind::kConfig, str("--task ", text, ": must be KIND=FILE"), "for example hellaswag=hellaswag_val.jsonl");
    }
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      fail(Kind::kConfig, str("--task ", text, ": there is no kind '", kind, "'"), "one of " + join(kinds, ", "));
    }
    return {.task = enum_from_name<EvalKind>(kind), .path = text.substr(equals + 1), .name = name, .limit = limit_};
  }

  std::string checkpoint_, model_, tokenizer_, dtype_, backend_, output_, samples_;
  std::vector<std::string> tasks_;
  EncodingOptions encoding_;
  CLI::Option* bos_given_ = nullptr;  // owned by the parser
  int64_t limit_ = 0;
  int64_t batch_tokens_ = 0;
  int64_t threads_ = 0;
};

}  // namespace

void add_eval(CLI::App& root, Commands& commands) {
  CLI::App* parser = root.add_subcommand("eval", "benchmarks and perplexity of a checkpoint or a Hugging Face model");
  commands.push_back(std::make_unique<EvalCommand>(parser));
}

}  // namespace tokamak::cli
