// tokamak eval: evaluates a checkpoint or a Hugging Face model on benchmarks and texts.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "cli/option_values.h"
#include "cli/run_context.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"
#include "eval/evaluations.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

using Json = nlohmann::ordered_json;

void print_table(std::ostream& out, const std::vector<EvalResult>& results) {
  const auto row = [&](const std::string& task, const std::string& items, const std::string& metric,
                       const std::string& value) {
    out << std::left << std::setw(24) << task << std::right << std::setw(8) << items << "  " << std::left
        << std::setw(18) << metric << std::right << std::setw(14) << value << "\n";
  };
  row("task", "items", "metric", "value");
  for (const EvalResult& result : results) {
    for (const NamedValue& one : result.values) {
      row(result.options.display_name(), str(result.samples.size()), one.name, significant(one.value, 6));
    }
  }
}

// Returns a line of JSON for each item.
std::string samples_of(const std::vector<EvalResult>& results) {
  std::string out;
  for (const EvalResult& result : results) {
    for (size_t item = 0; item < result.samples.size(); ++item) {
      out += Json{{"task", result.options.display_name()}, {"item", item}, {"log_likelihoods", result.samples[item]}}
                 .dump() +
             "\n";
    }
  }
  return out;
}

class EvalCommand : public Command {
 public:
  explicit EvalCommand(CLI::App* parser) : model_(parser) {
    parser
        ->add_option("--task", tasks_,
                     str("KIND=FILE or KIND/NAME=FILE, may be given several times; KIND is one of ",
                         join(enum_names(EvalKind{}), ", "), ": questions as JSON lines, text as .txt or .jsonl"))
        ->required()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->add_option("--limit", limit_, "only the first items of each task; 0: all")->capture_default_str();
    parser
        ->add_option("--context", encoding_.context,
                     "maximum tokens that the model sees; 0: model.max_position_embeddings")
        ->capture_default_str();
    parser->add_option("--batch-tokens", batch_tokens_, "tokens of a micro-batch; 0: 4096, or the context if longer")
        ->capture_default_str();
    parser->add_flag("--by-position", by_position_,
                     "shards: also the loss at positions 0 to 127, 128 to 255, 256 to 511, ... of documents");
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
      std::vector<EvalResult> results;
      or_end_all(world, [&] { results = evaluate(world); });
      if (world.rank() != 0) return 0;
      print_table(std::cout, results);
      if (!output_.empty()) write_text_atomically(output_, json_of(results, world.size()), Kind::kConfig);
      if (!samples_.empty()) write_text_atomically(samples_, samples_of(results), Kind::kConfig);
      return 0;
    });
  }

 private:
  std::string json_of(const std::vector<EvalResult>& results, int ranks) const {
    Json tasks = Json::object();
    for (const EvalResult& result : results) {
      Json& task = tasks[result.options.display_name()];
      for (const NamedValue& one : result.values) task[one.name] = one.value;
      task["items"] = result.samples.size();
      task["file"] = result.options.path;
      task["limit"] = result.options.limit;
      task["seconds"] = result.seconds;
    }
    const Json report = {{"weights", model_.checkpoint.empty() ? model_.model : model_.checkpoint},
                         {"average", model_.weights},
                         {"tokenizer", model_.tokenizer},
                         {"dtype", model_.dtype},
                         {"context", encoding_.context},
                         {"add_bos", encoding_.add_bos},
                         {"ranks", ranks},
                         {"results", tasks}};
    return report.dump(2) + "\n";
  }

  std::vector<EvalResult> evaluate(World& world) {
    std::unique_ptr<ModelSource> source;
    std::optional<Evaluations> evaluations;
    collectively(world.comm(), [&] { source = open_model_source(world.comm(), model_); });
    collectively(world.comm(), [&] { evaluations = read_tasks(*source); });
    const RunConfig config = model_.config_for(*source);
    model_.dtype = enum_name(config.precision.compute);
    Backend backend = make_backend_collectively(world, config.runtime);
    const std::unique_ptr<Comm> data_comm = make_data_comm(world.comm(), *backend.device, config.runtime);
    const EngineSizes sizes{
        .max_tokens = std::max<int64_t>(batch_tokens_ > 0 ? batch_tokens_ : 4096, encoding_.context),
        .max_length = encoding_.context,
        .training = false};
    Engine engine(engine_options(config, sizes), *data_comm, backend);
    engine.commit();
    fill(engine, *source);
    return evaluations->run(engine, [] {});
  }

  Evaluations read_tasks(const ModelSource& source) {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_for(source, model_);
    model_.tokenizer = tokenizer->path();
    encoding_.add_bos = model_.adds_bos(source);
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
    return {.task = enum_from_name<EvalKind>(kind),
            .path = text.substr(equals + 1),
            .name = name,
            .limit = limit_,
            .by_position = by_position_};
  }

  ModelOptions model_;
  std::string output_, samples_;
  std::vector<std::string> tasks_;
  EncodingOptions encoding_;
  int64_t limit_ = 0;
  bool by_position_ = false;
  int64_t batch_tokens_ = 0;
};

}  // namespace

void add_eval(CLI::App& root, Commands& commands) {
  add_command<EvalCommand>(root, commands, "eval", "benchmarks and perplexity of a checkpoint or a Hugging Face model");
}

}  // namespace tokamak::cli
