#include "interop/import_hf.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/staged.h"
#include "checkpoint/lock.h"
#include "checkpoint/manifest.h"
#include "checkpoint/store.h"
#include "config/load.h"
#include "config/print.h"
#include "data/sample_source.h"
#include "formats/flat_slice.h"
#include "interop/weight_stream.h"
#include "model/parameters.h"
#include "tensor/unit_layout.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

namespace {

constexpr int64_t kShardBytes = int64_t{4} << 30;  // approximate size: ranks verify files in parallel
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

// Describes the slices as if `shards` ranks had saved them. The tensors have no memory.
std::vector<UnitSlices> describe_slices(const ParamTable& table, int shards) {
  std::vector<UnitSlices> units;
  for (const Unit& unit : table.units) {
    UnitSlices& slices = units.emplace_back(UnitSlices{&unit, {}});
    slices.slices.push_back({"master", {Tensor(nullptr, DType::kF32, Shape{UnitLayout(unit).slice(shards)})}});
  }
  return units;
}

// Writes a checkpoint's files into `directory`; returns their manifest without the run state.
CheckpointManifest write_checkpoint(const HfModel& model, const std::string& directory, const Progress& progress) {
  const ReadParam read = model.weights();
  const ParamTable table = make_param_table(model.config());
  const int64_t total = table.count() * size_of(DType::kF32);
  const auto shards = static_cast<int>((total + kShardBytes - 1) / kShardBytes);
  const std::vector<UnitSlices> units = describe_slices(table, shards);
  CheckpointManifest manifest;
  manifest.world_size = shards;
  manifest.kinds = kinds_of(units);
  manifest.units = describe_units(units, shards);
  int64_t done = 0;
  std::vector<float> values;
  for (int shard = 0; shard < shards; ++shard) {
    const std::string name = shard_file_name(shard, shards);
    SafetensorsWriter writer(str(directory, "/", name), shard_entries(units),
                             {{"format", "pt"}, {"shard", str(shard, "/", shards)}, {"step", "0"}}, Kind::kCheckpoint);
    for (const UnitSlices& unit : units) {
      const int64_t slice = unit.slices[0].count();
      for (int64_t at = 0; at < slice; at += kElementsAtOnce) {
        values.resize(std::min(kElementsAtOnce, slice - at));
        read_flat(*unit.unit, slice * shard + at, values, read);
        writer.write(std::as_bytes(std::span(values)));
        done += std::ssize(values) * size_of(DType::kF32);
        if (progress) progress(std::min(done, total), total);  // padding is not counted
      }
    }
    const FileDigest digest = writer.finish();
    manifest.files.push_back({name, digest.bytes, digest.xxh3_128});
  }
  return manifest;
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
  const std::string store = run_files::at(staged.staging(), run_files::kCheckpoints);
  const std::string directory = str(store, "/", step_name(0));
  make_directories(directory, Kind::kCheckpoint);

  CheckpointManifest manifest = write_checkpoint(model, directory, progress);
  manifest.point.seed = report.config.run.seed;
  manifest.point.config = config_text;
  manifest.point.data = state_before_any_data(tokenizer_hash);
  manifest.tool = TOKAMAK_VERSION;
  manifest.created = utc_timestamp();
  manifest.incarnation = current_incarnation().id;
  write_text_atomically(str(directory, "/", kManifestName), encode_manifest(manifest), Kind::kCheckpoint);
  sync_directory(store, Kind::kCheckpoint);
  write_text_atomically(run_files::at(staged.staging(), run_files::kConfig), config_text, Kind::kCheckpoint);
  staged.commit();
  report.parameters = manifest.param_elements();
  report.bytes = manifest.total_bytes();
  return report;
}

}  // namespace tokamak
