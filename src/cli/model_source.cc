#include "cli/model_source.h"

#include "base/error.h"
#include "base/file.h"
#include "base/run_files.h"
#include "checkpoint/choose.h"
#include "cli/option_values.h"
#include "config/load.h"
#include "data/sample_source.h"
#include "interop/hf_model.h"
#include "train/state_slices.h"

namespace tokamak::cli {

namespace {

class CheckpointSource final : public ModelSource {
 public:
  CheckpointSource(Comm& comm, const std::string& path, const std::string& average)
      : comm_(comm), reader_(open_checkpoint_at(comm, path)), config_(config_of_checkpoint(reader_)) {
    if (!average.empty()) reader_.use_average(average);
  }
  const std::string& name() const override { return reader_.directory(); }
  const RunConfig& config() const override { return config_; }
  std::string tokenizer_path() const override {
    const std::string run = parent_directory(parent_directory(reader_.directory()));
    std::string path = find_tokenizer(run);
    if (path.empty()) {
      fail(Kind::kData, str("no ", run_files::at(run, run_files::kTokenizer), " and no tokenizer.json there"),
           "name the model with --tokenizer");
    }
    return path;
  }
  std::string tokenizer_hash() const override { return tokenizer_in_state(reader_.manifest().point.data); }
  bool adds_bos() const override { return false; }  // as `tokamak data tokenize` does without --bos
  void fill(HostState& state) override { load(comm_, reader_, state.place(), state.slices()); }

 private:
  Comm& comm_;
  CheckpointReader reader_;
  RunConfig config_;
};

class HfSource final : public ModelSource {
 public:
  explicit HfSource(const std::string& path) : model_(HfModel::open(path)) {
    config_.model = model_.config();
    config_.precision.compute = model_.type() == WeightType::kF32 ? Precision::kF32 : Precision::kBF16;
  }
  const std::string& name() const override { return model_.directory(); }
  const RunConfig& config() const override { return config_; }
  std::string tokenizer_path() const override {
    if (!model_.tokenizer_path().empty()) return model_.tokenizer_path();
    fail(Kind::kData, str(model_.directory(), " has no tokenizer.model and no tokenizer.json"),
         "name one that tokenizes as this model expects with --tokenizer");
  }
  // Its tokenizer.model may be a conversion of the files that the model was trained with.
  std::string tokenizer_hash() const override { return ""; }
  bool adds_bos() const override { return model_.adds_bos(); }
  void fill(HostState& state) override { load(model_, state.place(), state.slices()); }

 private:
  HfModel model_;
  RunConfig config_;
};

}  // namespace

ModelOptions::ModelOptions(CLI::App* parser) {
  parser->add_option("--checkpoint", checkpoint,
                     "a checkpoint, or a directory of them, whose newest that verifies is used");
  add_weights(parser, weights);
  parser->add_option("--model", model, "a Hugging Face directory: config.json, safetensors, tokenizer.model or .json");
  parser->add_option(
      "--tokenizer", tokenizer,
      "SentencePiece model, tokenizer.json or FILE.tiktoken#PRESET; default: that of the run or of the model");
  bos_given = parser->add_flag("--bos,!--no-bos", add_bos,
                               "prepend the BOS token to each text or prompt, as `data tokenize --bos`; default: as in "
                               "tokenizer_config.json; off for a checkpoint");
  parser->add_option("--dtype", dtype, "f32 or bf16; default: that of the run, or of the weights")
      ->check(CLI::IsMember(enum_names(Precision{})));
  parser->add_option("--backend", backend, "auto, cpu or cuda; default: as in the run's config")
      ->check(CLI::IsMember(enum_names(BackendKind{})));
  parser->add_option("--threads", threads, "CPU threads of each rank; 0: its share of the cores")
      ->capture_default_str();
}

RunConfig ModelOptions::config_for(const ModelSource& source) const {
  RunConfig config = source.config();
  if (!dtype.empty()) config.precision.compute = enum_from_name<Precision>(dtype);
  if (!backend.empty()) config.runtime.backend = enum_from_name<BackendKind>(backend);
  config.runtime.threads_per_rank.value = threads;
  return config;
}

std::unique_ptr<ModelSource> open_model_source(Comm& comm, const ModelOptions& options) {
  const std::string &checkpoint = options.checkpoint, &model = options.model;
  if (checkpoint.empty() == model.empty()) {
    fail(Kind::kConfig,
         checkpoint.empty() ? "neither --checkpoint nor --model is given" : "--checkpoint and --model are both given",
         "give one of them: a checkpoint, or a Hugging Face directory");
  }
  if (!model.empty() && !options.weights.empty()) {
    fail(Kind::kConfig,
         str("--weights ", options.weights, " needs --checkpoint: a Hugging Face directory has no averages"));
  }
  if (!model.empty()) return std::make_unique<HfSource>(model);
  return std::make_unique<CheckpointSource>(comm, checkpoint, options.weights);
}

std::unique_ptr<Tokenizer> load_tokenizer_for(const ModelSource& source, const ModelOptions& options) {
  std::unique_ptr<Tokenizer> tokenizer =
      load_tokenizer(options.tokenizer.empty() ? source.tokenizer_path() : options.tokenizer);
  expect_tokenizer_of(source.name(), source.tokenizer_hash(), *tokenizer);
  const int64_t rows = source.config().model.vocab_size;
  if (tokenizer->vocab_size() > rows) {
    fail(Kind::kData,
         str(tokenizer->path(), " has ", tokenizer->vocab_size(), " pieces, but the model's vocabulary has ", rows));
  }
  return tokenizer;
}

void fill(Engine& engine, ModelSource& source) {
  HostState state(engine);
  source.fill(state);
  state.push();
}

}  // namespace tokamak::cli
