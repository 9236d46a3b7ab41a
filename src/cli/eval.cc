// tokamak eval: evaluates a checkpoint or a Hugging Face model on benchmarks and texts.
#include <algorithm>
#include <filesystem>
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
#include "config/units.h"
#include "eval/evaluations.h"
#include "train/memory_check.h"
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
    const std::string& task = result.options.display_name();
    for (const NamedValue& one : result.figures.values) {
      row(task, str(result.samples.size()), one.name, significant(one.value, 6));
    }
    for (const auto& [part, values] : result.figures.parts) {
      for (const NamedValue& one : values) row(str("  ", part), "", one.name, significant(one.value, 6));
    }
  }
}

// Returns a line of JSON for each item.
std::string samples_of(const std::vector<EvalResult>& results) {
  std::string out;
  for (const EvalResult& result : results) {
    for (size_t item = 0; item < result.samples.size(); ++item) {
      Json sample = {{"task", result.options.display_name()}, {"item", item}};
      const size_t texts = result.texts.size() / result.samples.size();
      for (size_t i = item * texts; i < (item + 1) * texts; ++i) {
        sample["texts"].push_back(result.texts[i]);
        for (const auto& [metric, right] : result.right) sample[metric].push_back(right[i]);
      }
      for (const SequenceScore& score : result.samples[item]) {
        sample["log_likelihoods"].push_back(score.log_likelihood);
        sample["greedy"].push_back(score.greedy);
      }
      if (!result.questions.empty()) {
        const Question& question = result.questions[item];
        for (const Choice& choice : question.choices) {
          sample["prompts"].push_back({question.before + choice.context, choice.continuation});
        }
        sample["answer"] = question.answer;
      }
      out += sample.dump() + "\n";
    }
  }
  return out;
}

constexpr int64_t kCachedBatches = 4;  // micro-batches of positions in the cache: 1.2 GB for 125M parameters in f32
constexpr int64_t kMostSlots = 64;     // more make micro-batches no better

class EvalCommand : public Command {
 public:
  explicit EvalCommand(CLI::App* parser) : model_(parser) {
    parser
        ->add_option("--task", tasks_,
                     str("KIND=FILE, KIND/NAME=FILE or FORM.yaml=FILE, may be given several times; KIND is one of ",
                         join(kinds(), ", ")))
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    const auto add_core = [this](const std::string& directory) { tasks_.push_back("core=" + directory); };
    parser->add_option_function<std::string>("--core", add_core, "the directory of CORE's bundle: --task core=DIR");
    parser->parse_complete_callback([this] {
      if (tasks_.empty()) throw CLI::RequiredError("--task");
    });
    parser->add_option("--limit", limit_, "only the first items of each task, of MMLU's of each subject; 0: all")
        ->capture_default_str();
    parser->add_option("--num-fewshot", num_fewshot_, "[TASK=]N: solved examples before each question; default: none")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->add_option("--fewshot", fewshot_, "TASK=FILE: the file that examples are taken from, of another split")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->add_option("--fewshot-seed", fewshot_seed_, "seed of their choice; the default is the harness's")
        ->capture_default_str();
    parser
        ->add_option("--context", encoding_.context,
                     "maximum tokens that the model sees; 0: model.max_position_embeddings")
        ->capture_default_str();
    parser->add_option("--batch-tokens", batch_tokens_, "tokens of a micro-batch; 0: 4096, or the context if longer")
        ->capture_default_str();
    parser->add_flag("--by-position", by_position_,
                     "shards: also the loss at positions 0 to 127, 128 to 255, 256 to 511, ... of documents");
    parser
        ->add_option("--num-samples", num_samples_,
                     "humaneval, mbpp: texts for each problem; 1: the likeliest, more: sampled, for pass@k")
        ->capture_default_str();
    parser->add_flag("--allow-code-execution", allow_code_execution_,
                     "humaneval, mbpp: run the programs that the model writes, in bubblewrap");
    parser->add_flag("--no-prefix-reuse", no_prefix_reuse_,
                     "compute each sequence from its first token: less memory, more time, for comparison");
    parser->add_option("--output", output_, "write one JSON object with all results to this file");
    parser->add_option("--samples", samples_, "write each item's prompts and scores to this file, as JSON lines");
    parser->footer(
        "Rules and wording are those of lm-evaluation-harness 0.4; the files are its data sets' JSON lines.\n\n"
        "  tokamak eval --checkpoint runs/mine/checkpoints --task hellaswag=hellaswag_val.jsonl --output results.json\n"
        "  mpirun -n 4 tokamak eval --model mine-hf --task arc/easy=arc_easy.jsonl --task text=held_out.jsonl\n"
        "  tokamak eval --model mine-hf --task mmlu=mmlu_test.jsonl --num-fewshot mmlu=5 --fewshot mmlu=mmlu_dev.jsonl");
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
      for (const NamedValue& one : result.figures.values) task[one.name] = one.value;
      for (const auto& [part, values] : result.figures.parts) {
        for (const NamedValue& one : values) task["parts"][part][one.name] = one.value;
      }
      task["items"] = result.samples.size();
      task["file"] = result.options.path;
      task["limit"] = result.options.limit;
      task["num_fewshot"] = result.options.num_fewshot;
      if (result.options.num_fewshot > 0) {
        task["fewshot_file"] = result.options.fewshot_path;
        task["fewshot_seed"] = result.options.fewshot_seed;
      }
      task["seconds"] = result.seconds;
    }
    const Json report = {{"weights", model_.checkpoint.empty() ? model_.model : model_.checkpoint},
                         {"average", model_.weights},
                         {"tokenizer", model_.tokenizer},
                         {"dtype", model_.dtype},
                         {"context", encoding_.context},
                         {"add_bos", encoding_.add_bos},
                         {"ranks", ranks},
                         {"rules", "lm-evaluation-harness 0.4.13"},
                         {"results", tasks}};
    return report.dump(2) + "\n";
  }

  std::vector<EvalResult> evaluate(World& world) {
    std::unique_ptr<ModelSource> source;
    collectively(world.comm(), [&] { source = open_model_source(world.comm(), model_); });
    collectively(world.comm(), [&] { evaluations_ = read_tasks(*source); });
    const RunConfig config = model_.config_for(*source);
    model_.dtype = enum_name(config.precision.compute);
    Backend backend = make_backend_collectively(world, config.runtime);
    const std::unique_ptr<Comm> data_comm = make_data_comm(world.comm(), *backend.device, config.runtime);
    const std::unique_ptr<Engine> engine = make_engine(world, config, *data_comm, backend);
    engine->commit();
    fill(*engine, *source);
    return evaluations_->run(*engine, [] {});
  }

  // With a smaller cache, or none to share, where the memory has no room for the wanted one.
  std::unique_ptr<Engine> make_engine(World& world, const RunConfig& config, const Mesh& mesh, Backend& backend) const {
    const int64_t room = memory_share(*backend.device, world, mesh, config.runtime).available;
    const int64_t least = evaluations_->longest_generated() > 0 ? 1 : 0;
    for (EngineSizes sizes = wanted_sizes();; sizes.cached_sequences /= 2) {
      auto engine = std::make_unique<Engine>(engine_options(config, sizes), mesh, backend);
      if (sizes.cached_sequences <= least || planned_bytes(engine->plan(), *backend.device) <= room) return engine;
    }
  }

  // Sequences with common beginnings share a cache of keys and values, whose memory depends on the micro-batch.
  EngineSizes wanted_sizes() const {
    EngineSizes sizes{.max_tokens = std::max<int64_t>(batch_tokens_ > 0 ? batch_tokens_ : 4096, encoding_.context),
                      .max_length = encoding_.context,
                      .training = false};
    const int64_t shared = no_prefix_reuse_ ? 0 : evaluations_->longest_shared();
    sizes.cached_length = std::max(shared, evaluations_->longest_generated());
    if (sizes.cached_length == 0) return sizes;
    const int64_t slots = kCachedBatches * sizes.max_tokens / sizes.cached_length;
    sizes.cached_sequences = std::clamp<int64_t>(slots, 1, kMostSlots);
    if (shared > 0) sizes.cache_ends = CacheEnds::kCutOff;
    return sizes;
  }

  Evaluations read_tasks(const ModelSource& source) {
    tokenizer_ = load_tokenizer_for(source, model_);
    model_.tokenizer = tokenizer_->path();
    encoding_.add_bos = model_.adds_bos(source);
    if (encoding_.context < 0 || limit_ < 0 || batch_tokens_ < 0) {
      fail(Kind::kConfig, "--context, --limit and --batch-tokens must not be negative");
    }
    if (num_samples_ < 1) fail(Kind::kConfig, str("--num-samples ", num_samples_, ": must be at least 1"));
    if (encoding_.context == 0) encoding_.context = source.config().model.max_position_embeddings;
    std::vector<EvalOptions> tasks;
    for (const std::string& task : tasks_) {
      EvalOptions options = parse_task(task);
      for (const EvalOptions& other : tasks) {
        if (other.display_name() != options.display_name()) continue;
        fail(Kind::kConfig, str("--task ", task, ": there is a task '", other.display_name(), "' already"),
             "KIND/NAME=FILE gives another name");
      }
      tasks.push_back(std::move(options));
    }
    add_examples(tasks);
    return Evaluations(tasks, *tokenizer_, encoding_);
  }

  // The kinds that --task names; a form's file stands for custom.
  static std::vector<std::string> kinds() {
    std::vector<std::string> names = enum_names(EvalKind{});
    std::erase(names, enum_name(EvalKind::kCustom));
    return names;
  }

  // {"KIND/NAME", "FILE"}
  static std::pair<std::string, std::string> name_and_value(const char* option, const std::string& text,
                                                            const char* form, const char* example) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals + 1 == text.size()) {
      fail(Kind::kConfig, str(option, " ", text, ": must be ", form), str("for example ", example));
    }
    return {text.substr(0, equals), text.substr(equals + 1)};
  }

  // KIND=FILE, KIND/NAME=FILE, FORM.yaml=FILE
  EvalOptions parse_task(const std::string& text) const {
    const auto [name, file] = name_and_value("--task", text, "KIND=FILE", "hellaswag=hellaswag_val.jsonl");
    EvalOptions options{.form = "",
                        .path = file,
                        .name = name,
                        .limit = limit_,
                        .fewshot_path = "",
                        .fewshot_seed = fewshot_seed_,
                        .by_position = by_position_,
                        .num_samples = num_samples_,
                        .allow_code_execution = allow_code_execution_};
    if (name.ends_with(".yaml")) {
      options.task = EvalKind::kCustom;
      options.form = name;
      options.name = std::filesystem::path(name).stem();
      return options;
    }
    const std::string kind = name.substr(0, name.find('/'));
    const std::vector<std::string> names = kinds();
    if (std::find(names.begin(), names.end(), kind) == names.end()) {
      fail(Kind::kConfig, str("--task ", text, ": there is no kind '", kind, "'"),
           str("one of ", join(names, ", "), ", or a form's file, mine.yaml"));
    }
    options.task = enum_from_name<EvalKind>(kind);
    return options;
  }

  // --num-fewshot and --fewshot
  void add_examples(std::vector<EvalOptions>& tasks) const {
    const auto task_named = [&](const char* option, const std::string& name) -> EvalOptions& {
      const auto found = std::find_if(tasks.begin(), tasks.end(),
                                      [&](const EvalOptions& task) { return task.display_name() == name; });
      if (found == tasks.end()) fail(Kind::kConfig, str(option, ": there is no --task '", name, "'"));
      if (!has_questions(found->task)) fail(Kind::kConfig, str(option, ": the task '", name, "' has no questions"));
      return *found;
    };
    const auto count_of = [](const std::string& text) {
      const Parsed<int64_t> count = parse_count(text);
      if (!count.value || *count.value < 0) {
        fail(Kind::kConfig, str("--num-fewshot ", text, ": must be a whole number, from 0 on"));
      }
      return *count.value;
    };
    for (const std::string& text : num_fewshot_) {
      if (text.find('=') == std::string::npos) {
        for (EvalOptions& task : tasks) task.num_fewshot = has_questions(task.task) ? count_of(text) : 0;
      } else {
        const auto [name, count] = name_and_value("--num-fewshot", text, "TASK=N", "mmlu=5");
        task_named("--num-fewshot", name).num_fewshot = count_of(count);
      }
    }
    for (const std::string& text : fewshot_) {
      const auto [name, file] = name_and_value("--fewshot", text, "TASK=FILE", "mmlu=mmlu_dev.jsonl");
      task_named("--fewshot", name).fewshot_path = file;
    }
  }

  ModelOptions model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<Evaluations> evaluations_;
  std::string output_, samples_;
  std::vector<std::string> tasks_, num_fewshot_, fewshot_;
  int64_t fewshot_seed_ = 1234;
  EncodingOptions encoding_;
  int64_t limit_ = 0, num_samples_ = 1;
  bool by_position_ = false, no_prefix_reuse_ = false, allow_code_execution_ = false;
  int64_t batch_tokens_ = 0;
};

}  // namespace

void add_eval(CLI::App& root, Commands& commands) {
  add_command<EvalCommand>(root, commands, "eval", "benchmarks and perplexity of a checkpoint or a Hugging Face model");
}

}  // namespace tokamak::cli
