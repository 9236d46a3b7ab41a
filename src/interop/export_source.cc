#include "interop/export_source.h"

#include <memory>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "config/load.h"
#include "formats/json.h"
#include "interop/folded_norm.h"
#include "model/parameters.h"

namespace tokamak {

std::string run_directory(const CheckpointReader& reader) {
  return parent_directory(parent_directory(reader.directory()));
}

void check_is_model(const CheckpointReader& reader, const ParamTable& table) {
  std::vector<const Unit*> units;
  for (const Unit& unit : table.units) units.push_back(&unit);
  check_same_model(reader, units);
}

namespace {

std::string own_tokenizer(const CheckpointReader& reader) {
  const std::string run = run_directory(reader);
  std::string path = find_tokenizer(run);
  if (path.empty()) {
    fail(Kind::kData,
         str("there is no ", run_files::at(run, run_files::kTokenizer), " to export, and no tokenizer.json"),
         "name one with --tokenizer: its file, a directory of Hugging Face tokenizer files, or none");
  }
  return path;
}

}  // namespace

ReadParam ExportSource::weights() {
  ReadParam read = [this](const std::string& name, int64_t first, std::span<float> out) {
    reader.read("master", name, first, out);
  };
  return unfolded ? fold_norm(*unfolded, std::move(read)) : read;
}

std::string ExportSource::metrics_path() const { return run_files::at(run_directory(reader), run_files::kMetrics); }

ExportSource make_export_source(CheckpointReader reader, const std::string& tokenizer) {
  RunConfig config = config_of_checkpoint(reader);
  // The export takes shapes from the config, so they must equal the stored shapes in the manifest.
  check_is_model(reader, make_param_table(config.model));
  ExportSource source{std::move(reader), std::move(config), {}, {}};
  if (ModelConfig& model = source.config.model; model.embedding_norm) {
    source.unfolded = std::exchange(model, with_folded_norm(model));
    log::info("model.embedding_norm is folded into the embeddings",
              source.unfolded->tie_word_embeddings ? ", so the head has weights of its own" : "");
  }
  if (tokenizer == "none") return source;
  if (is_directory(tokenizer)) {
    source.tokenizer.directory = tokenizer;
    const std::string path = tokenizer + "/config.json";
    if (exists(path)) source.ids = read_special_ids(JsonDocument::read(path, Kind::kData));
    return source;
  }
  const std::string path = tokenizer.empty() ? own_tokenizer(source.reader) : tokenizer;
  std::unique_ptr<Tokenizer> model = load_tokenizer(path);
  const int64_t rows = source.config.model.vocab_size;
  if (model->vocab_size() > rows) {
    fail(Kind::kData, str(path, " has ", model->vocab_size(), " pieces, but the model's vocabulary has ", rows));
  }
  if (model->bos_id() >= 0) source.ids.bos = model->bos_id();
  if (model->eos_id() >= 0) source.ids.eos = model->eos_id();
  source.tokenizer.tokenizer = std::move(model);
  return source;
}

}  // namespace tokamak
