#include "interop/import_hf.h"

#include <algorithm>

#include "base/file.h"
#include "base/run_files.h"
#include "base/staged.h"
#include "config/load.h"
#include "config/print.h"
#include "data/sample_source.h"
#include "interop/weights_checkpoint.h"
#include "model/parameters.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

constexpr int64_t kSequenceLength = 2048;

// A placeholder until the user sets data and the training length.
RunConfig default_config(const ModelConfig& model, const std::string& out) {
  RunConfig config;
  config.run.name = out.substr(out.find_last_of('/', out.find_last_not_of('/')) + 1);
  config.run.output_dir = out;
  config.data.sequence_length = std::min(model.max_position_embeddings, kSequenceLength);
  config.data.sources = {{"datasets/train", 1.0}};
  config.training.max_steps = 1000;
  config.training.global_batch_tokens = 64 * config.data.sequence_length;
  return config;
}

// The run's config with the imported model, validated as a whole.
RunConfig make_config(const ModelConfig& model, const ImportOptions& options, const std::string& out) {
  RunConfig config =
      options.config.empty() ? default_config(model, out) : load_config(options.config, options.overrides);
  config.model = model;
  for (const std::string& word : options.overrides) {
    if (!starts_with(word, "model.")) continue;
    fail(Kind::kConfig, str(word, ": the model is the one that is imported"),
         "give `tokamak train` the keys that may change, like model.max_position_embeddings");
  }
  return parse_config(print_config(config), "the config of the imported model", options.overrides);
}

}  // namespace

ImportReport import_hf(const HfModel& model, const ImportOptions& options, const std::string& out,
                       const Progress& progress) {
  ImportReport report;
  report.config = make_config(model.config(), options, out);
  const std::string config_text = print_config(report.config);

  StagedOutput staged(out, StagedOutput::What::kDirectory, Kind::kCheckpoint);
  const std::string tokenizer_path = model.tokenizer_path();
  std::string tokenizer_hash;
  if (!tokenizer_path.empty()) {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(tokenizer_path);
    tokenizer_hash = tokenizer->hash();
    tokenizer->copy_files(staged.staging());
    report.tokenizer = true;
  }
  TrainingPoint point;
  point.seed = report.config.run.seed;
  point.config = config_text;
  point.data = state_before_any_data(tokenizer_hash);
  const CheckpointManifest manifest =
      write_weights_checkpoint(run_files::at(staged.staging(), run_files::kCheckpoints), point,
                               make_param_table(report.config.model), model.weights(), progress);
  write_text_atomically(run_files::at(staged.staging(), run_files::kConfig), config_text, Kind::kCheckpoint);
  staged.commit();
  report.parameters = manifest.param_elements();
  report.bytes = manifest.total_bytes();
  return report;
}

}  // namespace tokamak
