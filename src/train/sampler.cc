#include "train/sampler.h"

#include <algorithm>

#include "base/error.h"
#include "base/field_checks.h"
#include "base/printable.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"
#include "data/manifest.h"
#include "infer/requests.h"
#include "infer/text_stream.h"
#include "train/run_data.h"

namespace tokamak {

namespace {

constexpr int64_t kMostSequences = 8;  // of one forward pass: up to here logits do not depend on how many (generator.h)
constexpr int64_t kNotOfText = 2;      // tokens: BOS, and the space that SentencePiece puts before a text

// Nearly always more than a prompt has tokens. Only a tokenizer that expands characters can exceed it.
int64_t most_tokens(const std::string& prompt) { return std::ssize(prompt) + kNotOfText; }

// Returns the prompt as an error shows it.
std::string shown(const std::string& prompt) { return str("'", printable(prompt, 60), "'"); }

std::string key_of(size_t prompt) { return str("training.samples.prompts[", prompt, "]"); }

std::vector<GenerationRequest> requests_of(const RunConfig& config, const Tokenizer& tokenizer, const Manifest& data) {
  return make_requests(tokenizer, config.training.samples.prompts, data.bos_id >= 0 && tokenizer.bos_id() >= 0);
}

void check_length(const RunConfig& config, size_t prompt, int64_t tokens, FieldChecks& checks) {
  const SampleOptions& options = config.training.samples;
  const std::string text = shown(options.prompts[prompt]);
  const int64_t context = config.data.sequence_length;
  if (!checks.require(tokens > 0, key_of(prompt), text, "has no tokens", "give a text to continue")) return;
  if (!checks.require(tokens < context, key_of(prompt), text,
                      str("has ", tokens, " tokens, which leaves no room for a text: the model sees ", context,
                          " at most (data.sequence_length)"),
                      "shorten the prompt")) {
    return;
  }
  checks.require(std::min(tokens + options.tokens, context) <= sample_sizes(config).length, key_of(prompt), text,
                 str("has ", tokens, " tokens, more than the memory plan counts for its ",
                     options.prompts[prompt].size(), " bytes"),
                 "choose a prompt of plainer characters");
}

}  // namespace

SampleSizes sample_sizes(const RunConfig& config) {
  const SampleOptions& options = config.training.samples;
  if (options.prompts.empty()) return {};
  int64_t longest = 0;
  for (const std::string& prompt : options.prompts) longest = std::max(longest, most_tokens(prompt));
  const int64_t context = config.data.sequence_length;
  // A forward pass has a token of each sequence, and a micro-batch has room for one sequence of the data.
  return {.sequences = std::min({std::ssize(options.prompts), kMostSequences, context}),
          .length = longest < context ? longest + std::min(options.tokens, context - longest) : context};
}

std::vector<FieldError> find_sample_problems(const RunConfig& config) {
  const SampleOptions& options = config.training.samples;
  if (options.prompts.empty()) return {};
  const std::string& directory = config.data.sources.at(0).path;
  const Manifest data = read_first_manifest(config);
  FieldChecks checks;
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer_of(directory, data);
  if (!checks.require(tokenizer != nullptr, "training.samples.prompts", shown(options.prompts[0]),
                      str("needs a tokenizer, and the data set ", directory, " has none"),
                      "tokenize the data with `tokamak data tokenize`, or leave the prompts out")) {
    return checks.take();
  }
  checks.require(tokenizer->vocab_size() <= config.model.vocab_size, "model.vocab_size", config.model.vocab_size,
                 str("is less than the ", tokenizer->vocab_size(), " pieces of ", tokenizer->path(),
                     ", which training.samples needs"));
  const std::vector<GenerationRequest> requests = requests_of(config, *tokenizer, data);
  for (size_t i = 0; i < requests.size(); ++i) check_length(config, i, std::ssize(requests[i].prompt), checks);
  return checks.take();
}

Sampler::Sampler(const RunConfig& config) : Sampler(config, read_first_manifest(config)) {}

Sampler::Sampler(const RunConfig& config, const Manifest& data)
    : options_(config.training.samples),
      tokenizer_(load_tokenizer_of(config.data.sources.at(0).path, data)),
      requests_(requests_of(config, *tokenizer_, data)) {}

Sampler::Result Sampler::run(Engine& engine, const std::function<void()>& between) const {
  Result result;
  std::vector<Detokenizer> detokenizers;
  for (size_t i = 0; i < requests_.size(); ++i) {
    result.samples.push_back({options_.prompts[i], ""});
    detokenizers.emplace_back(*tokenizer_, requests_[i].prompt);
  }
  const GenerationOptions options = {
      .max_tokens = options_.tokens,
      .vocab_size = tokenizer_->vocab_size(),
      .eos = tokenizer_->eos_id(),
      .prefill_step = std::min(kPrefillStep, engine.model().max_tokens()),
      .seed = static_cast<uint64_t>(options_.seed),
      .sampling = {.temperature = options_.temperature, .top_p = options_.top_p},
      .between = between,
      // Logits of two GPUs may differ in their last bits, and the ranks are to stay together.
      .choose = [&](const Choose& own) { return values_of_rank_zero(engine.comm(), own); }};
  Generator generator(engine.model(), engine.cache(), *engine.backend().device, engine.compute());
  try {
    generator.run(
        requests_, options,
        [&](size_t request, int32_t id) {
          result.samples[request].text += detokenizers[request].next(id);
          return Generator::Verdict::kContinue;
        },
        [&](size_t request, Finish, int64_t) { result.samples[request].text += detokenizers[request].rest(); });
  } catch (const SharedError& error) {
    if (error.kind() != Kind::kNumerics) throw;
    result.problem = error.what();
  }
  return result;
}

}  // namespace tokamak
