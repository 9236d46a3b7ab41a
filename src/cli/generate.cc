// tokamak generate: continues prompts with the weights of a checkpoint or of a Hugging Face directory.
#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "cli/option_values.h"
#include "cli/prompts.h"
#include "cli/run_context.h"
#include "infer/generator.h"
#include "infer/requests.h"
#include "infer/text_writer.h"
#include "tokenizer/tokenizer.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

class GenerateCommand : public Command {
 public:
  explicit GenerateCommand(CLI::App* parser) : model_(parser) {
    add_prompts(parser);
    add_choice(parser);
    add_output(parser);
    parser->footer(
        "  tokamak generate --checkpoint runs/mine/checkpoints --prompt 'It was' --temperature 0\n"
        "  tokamak generate --model Llama-3.2-1B --prompts questions.jsonl --stop $'\\n' --jsonl > answers.jsonl\n\n"
        "A prompt's text depends only on the prompt, the seed and the options, not on other prompts; a prompt that is\n"
        "given several times gets different texts. On a CPU this holds to the last bit, for any --batch.\n"
        "Logits are processed in the order of transformers: repetition penalty, temperature, top-k, top-p.");
  }

  int run() override {
    return run_in_world([this](World& world) {
      log::configure(world.rank(), world.size(), log::Level::kWarning);  // only the text is printed
      if (world.size() > 1) fail(Kind::kConfig, str("generate runs on one rank, not ", world.size()));
      check_options();
      return generate(world);
    });
  }

 private:
  void add_prompts(CLI::App* parser) {
    parser->add_option("--prompt", prompts_.texts, "text to continue; may be given several times")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser
        ->add_option("--prompt-file", prompts_.files,
                     "a file with one prompt; a final line break is dropped; '-': standard input")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser
        ->add_option("--prompts", prompts_.jsonl,
                     "a file of prompts: lines of JSON with the key \"prompt\"; '-': standard input")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_choice(CLI::App* parser) {
    SamplingOptions& s = options_.sampling;
    parser->add_option("--max-tokens", options_.max_tokens, "maximum new tokens per prompt")->capture_default_str();
    parser
        ->add_option("--context", context_,
                     "maximum tokens of a prompt and its text together; 0: model.max_position_embeddings")
        ->capture_default_str();
    parser->add_option("--stop", texts_.stops, "end a text before this string; may be given several times")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->add_flag("--ignore-eos", ignore_eos_, "continue after the EOS token");
    parser->add_option("--temperature", s.temperature, "0: always the likeliest token")->capture_default_str();
    parser->add_option("--top-k", s.top_k, "sample among the k likeliest tokens; 0: all")->capture_default_str();
    parser->add_option("--top-p", s.top_p, "sample among the fewest tokens that have this probability together")
        ->capture_default_str();
    parser
        ->add_option("--repetition-penalty", s.repetition_penalty,
                     "divide positive logits of tokens in prompt and text by this, multiply negative ones; 1: off")
        ->capture_default_str();
    parser->add_option("--seed", options_.seed, "seed of the sampling")->capture_default_str();
  }

  void add_output(CLI::App* parser) {
    parser->add_option("--batch", batch_, "maximum prompts in a batch")->capture_default_str();
    parser->add_flag("--jsonl", texts_.jsonl,
                     "print a line of JSON per prompt: prompt, text, tokens (new ones, including EOS), finish_reason "
                     "(stop, length, eos)");
    echo_ = parser->add_flag("--echo,!--no-echo", texts_.echo,
                             "print the prompt before its text (default, except with --jsonl)");
  }

  void check_options() {
    const SamplingOptions& s = options_.sampling;
    const auto require = [](bool good, const char* name, auto value, const char* what) {
      if (!good) fail(Kind::kConfig, str(name, " ", value, ": ", what));
    };
    require(options_.max_tokens >= 1, "--max-tokens", options_.max_tokens, "must be at least 1");
    require(context_ >= 0, "--context", context_, "must not be negative");
    require(batch_ >= 1, "--batch", batch_, "must be at least 1");
    require(s.temperature >= 0, "--temperature", s.temperature, "must not be negative");
    require(s.top_k >= 0, "--top-k", s.top_k, "must not be negative");
    require(s.top_p > 0 && s.top_p <= 1, "--top-p", s.top_p, "must be above 0 and at most 1");
    require(s.repetition_penalty > 0, "--repetition-penalty", s.repetition_penalty, "must be positive");
    for (const std::string& stop : texts_.stops)
      require(!stop.empty(), "--stop", "''", "an empty string ends every text");
    if (texts_.jsonl && echo_->count() > 0 && texts_.echo) {
      fail(Kind::kConfig, "--echo and --jsonl exclude each other: the JSON has the prompt");
    }
  }

  int generate(World& world) {
    const std::vector<std::string> prompts = read_prompts(prompts_);
    const std::unique_ptr<ModelSource> source = open_model_source(world.comm(), model_);
    const RunConfig config = model_.config_for(*source);
    const std::unique_ptr<Tokenizer> loaded = load_tokenizer_for(*source, model_);
    const Tokenizer& tokenizer = *loaded;
    model_.add_bos = model_.adds_bos(*source);
    const int64_t context = context_ > 0 ? context_ : config.model.max_position_embeddings;
    const std::vector<GenerationRequest> requests = encode(tokenizer, prompts, context);
    Backend backend = make_backend(config.runtime, world.local_rank(), 1);
    const EngineSizes sizes = sizes_for(requests, context);
    Engine engine(engine_options(config, sizes), world.comm(), backend);
    expect_room(engine.plan(), *backend.device, sizes);
    engine.commit();
    fill(engine, *source);
    options_.vocab_size = tokenizer.vocab_size();
    options_.eos = ignore_eos_ ? -1 : tokenizer.eos_id();
    options_.prefill_step = sizes.max_tokens;
    Generator generator(engine.model(), engine.cache(), *backend.device, engine.compute());
    TextWriter writer(tokenizer, prompts, requests, texts_, std::cout);
    report(generator.run(
        requests, options_, [&](size_t request, int32_t id) { return writer.token(request, id); },
        [&](size_t request, Finish finish, int64_t tokens) { writer.finish(request, finish, tokens); }));
    return 0;
  }

  std::vector<GenerationRequest> encode(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                        int64_t context) const {
    if (model_.add_bos && tokenizer.bos_id() < 0)
      fail(Kind::kConfig, str("--bos: ", tokenizer.path(), " has no BOS token"));
    std::vector<GenerationRequest> requests = make_requests(tokenizer, prompts, model_.add_bos);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const int64_t length = std::ssize(requests[i].prompt);
      const std::string which = str("prompt ", i + 1, " of ", prompts.size());
      if (length == 0) fail(Kind::kConfig, str(which, " has no tokens"));
      if (length >= context) {
        fail(Kind::kConfig, str(which, " has ", length, " tokens, which leaves no room in a context of ", context),
             context_ > 0 ? "a larger --context, or a shorter prompt"
                          : "the context is model.max_position_embeddings; --context sets another");
      }
    }
    return requests;
  }

  // Each slot of the batch has room for the longest possible text of these prompts.
  EngineSizes sizes_for(const std::vector<GenerationRequest>& requests, int64_t context) const {
    int64_t longest = 0;
    for (const GenerationRequest& r : requests) longest = std::max(longest, std::ssize(r.prompt));
    const int64_t places = std::min(batch_, std::ssize(requests));
    return {.max_tokens = std::max(places, std::min(longest, kPrefillStep)),
            .max_length = longest + std::min(options_.max_tokens, context - longest),
            .training = false,
            .cached_sequences = places};
  }

  static void expect_room(const MemoryPlan& plan, const Device& device, const EngineSizes& sizes) {
    const int64_t needed = planned_bytes(plan, device), available = device.available_bytes() - device.reserve_bytes();
    if (needed <= available) return;
    fail(Kind::kDevice,
         str("generation needs ", human_bytes(needed), " for the weights and ", sizes.cached_sequences, " x ",
             sizes.max_length, " cached tokens; ", human_bytes(available), " are available"),
         "a smaller --batch, --max-tokens or --context");
  }

  static void report(const GenerationTimes& t) {
    const auto rate = [](int64_t tokens, double seconds) {
      return str(tokens, " tokens, ", seconds > 0 ? fixed(double(tokens) / seconds, 1) : "-", "/s");
    };
    std::cerr << "prompts: " << rate(t.prompt_tokens, t.prompt_seconds)
              << "; text: " << rate(t.decoded_tokens, t.decode_seconds) << "\n";
  }

  ModelOptions model_;
  PromptOptions prompts_;
  GenerationOptions options_{.max_tokens = 64, .seed = 1, .sampling = {}};
  TextOptions texts_;
  int64_t context_ = 0, batch_ = 8;
  bool ignore_eos_ = false;
  CLI::Option* echo_ = nullptr;  // owned by the parser
};

}  // namespace

void add_generate(CLI::App& root, Commands& commands) {
  add_command<GenerateCommand>(root, commands, "generate", "continue prompts with a model's weights");
}

}  // namespace tokamak::cli
