// tokamak generate: continues a prompt with the weights of a checkpoint. Each token runs the whole context again: fine
// for a look at a model in training.
#include <algorithm>
#include <iostream>
#include <numeric>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "checkpoint/choose.h"
#include "cli/command.h"
#include "cli/run_context.h"
#include "config/load.h"
#include "model/sampling.h"
#include "tokenizer/tokenizer.h"
#include "train/assembly.h"
#include "train/state_slices.h"

namespace tokamak::cli {

namespace {

class GenerateCommand : public Command {
 public:
  explicit GenerateCommand(CLI::App* parser) : Command(parser) {
    parser
        ->add_option("--checkpoint", checkpoint_, "a checkpoint, or a directory of them: then the newest that verifies")
        ->required();
    parser->add_option("--prompt", prompt_, "text to continue")->required();
    parser->add_option("--tokenizer", tokenizer_,
                       "SentencePiece model; default: the run's own copy, beside its checkpoints");
    parser->add_option("--max-tokens", max_tokens_, "tokens to generate at most")->capture_default_str();
    parser->add_option("--temperature", sampling_.temperature, "0: always the likeliest token")->capture_default_str();
    parser->add_option("--top-k", sampling_.top_k, "choose among the k likeliest; 0: all")->capture_default_str();
    parser->add_option("--top-p", sampling_.top_p, "choose among the fewest tokens with this probability together")
        ->capture_default_str();
    parser->add_option("--seed", seed_, "of the choices")->capture_default_str();
    parser->add_option("--threads", threads_, "CPU threads; 0: all cores")->capture_default_str();
  }

  int run() override {
    return run_in_world([this](World& world) {
      log::configure(world.rank(), world.size(), log::Level::kWarning);  // the text is what was asked for
      if (world.size() > 1) fail(Kind::kConfig, str("generate runs on one rank, not ", world.size()));
      return generate(world);
    });
  }

 private:
  int generate(World& world) {
    CheckpointReader reader = open_checkpoint(world.comm());
    const RunConfig config = parse_config(reader.manifest().point.config, reader.directory() + "/manifest.json", {});
    const Tokenizer tokenizer = Tokenizer::load(tokenizer_path(reader.directory()));
    if (tokenizer.vocab_size() > config.model.vocab_size) {
      fail(Kind::kData, str(tokenizer.path(), " has ", tokenizer.vocab_size(),
                            " pieces, but the model's vocabulary has ", config.model.vocab_size));
    }

    RuntimeOptions runtime = config.runtime;
    runtime.threads_per_rank.value = threads_;
    Backend backend = make_backend(runtime, world.local_rank(), 1);
    const int64_t context = config.data.sequence_length;
    Assembly assembly(config, world.comm(), backend, {.max_tokens = context, .max_length = context, .training = false});
    assembly.commit();
    HostState state(assembly);
    load(world.comm(), reader, shard_place(world.comm()), state.slices());
    state.push();
    assembly.parameters().masters_changed(assembly.compute());

    std::vector<int32_t> ids;
    Encoder(tokenizer).encode(prompt_, ids);
    if (ids.empty()) fail(Kind::kConfig, "--prompt has no tokens");
    continue_text(assembly, tokenizer, ids, context);
    return 0;
  }

  // Prints the prompt and each token as it comes.
  void continue_text(Assembly& assembly, const Tokenizer& tokenizer, std::vector<int32_t> ids, int64_t context) const {
    MemoryPlan plan;
    const auto slot = plan.add("logits", DType::kF32, Shape{1, assembly.model().config().vocab_size});
    const Arena arena(plan, *assembly.backend().device);
    const Tensor device_logits = arena[slot];
    std::vector<float> logits(static_cast<size_t>(device_logits.count()));
    const RandomStream random(static_cast<uint64_t>(seed_), "generate");

    std::string shown = tokenizer.decode(ids);
    std::cout << shown << std::flush;
    for (int64_t n = 0; n < max_tokens_; ++n) {
      const auto length = std::min(context, static_cast<int64_t>(ids.size()));
      const std::span<const int32_t> window = std::span(ids).last(static_cast<size_t>(length));
      std::vector<int32_t> positions(window.size());
      std::iota(positions.begin(), positions.end(), 0);
      const std::vector<int32_t> bounds = {0, static_cast<int32_t>(length)};
      assembly.model().logits(assembly.compute(), {window, {}, positions, bounds}, length - 1, device_logits);
      assembly.backend().device->copy_to_host(assembly.compute(), device_logits, logits.data());
      assembly.compute().synchronize();
      // The model may have more rows than the tokenizer has pieces: those stand for nothing.
      const std::span<const float> pieces = std::span(logits).first(static_cast<size_t>(tokenizer.vocab_size()));
      ids.push_back(sample_token(pieces, sampling_, random.uniform(static_cast<uint64_t>(n))));
      if (ids.back() == tokenizer.eos_id()) break;
      const std::string text = tokenizer.decode(ids);
      // A character of several byte pieces shows up when its last byte has come.
      if (text.size() > shown.size() && text.compare(0, shown.size(), shown) == 0 && complete_utf8(text)) {
        std::cout << text.substr(shown.size()) << std::flush;
        shown = text;
      }
    }
    std::cout << "\n";
  }

  static bool complete_utf8(const std::string& text) {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    return text.size() < 3 || std::string_view(text).substr(text.size() - 3) != kReplacement;
  }

  CheckpointReader open_checkpoint(Comm& comm) const {
    const bool one = exists(checkpoint_ + "/manifest.json");
    const CheckpointStore store(one ? parent_directory(checkpoint_) : checkpoint_);
    auto reader = choose_checkpoint(comm, store, one ? checkpoint_ : "auto");
    if (!reader) fail(Kind::kCheckpoint, str(checkpoint_, " holds no checkpoint"));
    return std::move(*reader);
  }

  std::string tokenizer_path(const std::string& step_directory) const {
    if (!tokenizer_.empty()) return tokenizer_;
    const std::string path = parent_directory(parent_directory(step_directory)) + "/tokenizer.model";
    if (!exists(path)) fail(Kind::kData, str("no ", path), "name the model with --tokenizer");
    return path;
  }

  std::string checkpoint_, prompt_, tokenizer_;
  int64_t max_tokens_ = 64;
  SamplingOptions sampling_;
  int64_t seed_ = 1;
  int64_t threads_ = 0;
};

}  // namespace

void add_generate(CLI::App& root, Commands& commands) {
  CLI::App* parser = root.add_subcommand("generate", "continue a prompt with a checkpoint's weights");
  commands.push_back(std::make_unique<GenerateCommand>(parser));
}

}  // namespace tokamak::cli
