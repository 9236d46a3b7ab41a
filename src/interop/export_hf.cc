#include "interop/export_hf.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "base/staged.h"
#include "formats/safetensors_index.h"
#include "interop/hf_tokenizer.h"
#include "interop/model_card.h"
#include "model/parameters.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/sentencepiece.h"

namespace tokamak {

namespace {

// The tokenizer files of a Hugging Face directory.
constexpr std::array<const char*, 9> kTokenizerFiles = {
    run_files::kTokenizer, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json",          "merges.txt",     "chat_template.jinja",   "generation_config.json"};

void write_file(const std::string& path, std::string_view text) {
  write_text_atomically(path, text, Kind::kCheckpoint);
}

// Position of a weight in transformers' state_dict: the embedding, the layers, the final norm, the head.
int64_t place_of(const std::string& name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (name == "model.embed_tokens.weight") return -1;
  if (starts_with(name, kLayers)) return std::stoll(name.substr(kLayers.size()));
  return name == "model.norm.weight" ? INT64_MAX - 1 : INT64_MAX;
}

void write_weights(ExportSource& source, const std::vector<ModelShard>& shards, WeightType type,
                   const std::string& directory, const Progress& progress, ExportReport& report) {
  int64_t total = 0;
  for (const ModelShard& shard : shards) total += shard.tensors.back().end;
  WeightStream stream(source.weights(), progress, total);
  for (const ModelShard& shard : shards) {
    SafetensorsWriter writer(directory + "/" + shard.file, shard.tensors, {{"format", "pt"}}, Kind::kCheckpoint);
    for (const SafetensorsEntry& tensor : shard.tensors) {
      stream.copy(tensor.name, tensor.count(), type, [&](std::span<const std::byte> bytes) { writer.write(bytes); });
    }
    report.bytes += writer.finish().bytes;
    report.tensors += std::ssize(shard.tensors);
  }
  report.weight_files = std::ssize(shards);
}

// Its own files say what it does with BOS and EOS.
void copy_tokenizer_json(const HfTokenizer& tokenizer, bool add_bos, const std::string& directory) {
  if (tokenizer.spec().format != "tokenizer.json") {
    fail(Kind::kConfig, str(tokenizer.path(), " is no tokenizer.json, which transformers needs"),
         "name a directory of Hugging Face tokenizer files with --tokenizer, or none");
  }
  if (add_bos && !tokenizer.spec().begins_with_bos()) {
    fail(Kind::kConfig, str("--bos: the post_processor of ", tokenizer.path(), " prepends no BOS token"),
         "change that file, which the export copies");
  }
  tokenizer.copy_files(directory);
}

void write_tokenizer(const ExportSource& source, bool add_bos, const std::string& directory) {
  const ExportTokenizer& tokenizer = source.tokenizer;
  if (const auto* model = dynamic_cast<const SentencePieceTokenizer*>(tokenizer.tokenizer.get())) {
    model->copy_files(directory);
    const HfTokenizerOptions options{add_bos, source.config.model.max_position_embeddings};
    for (const TokenizerFile& file : render_hf_tokenizer(model->proto(), model->path(), options)) {
      write_file(directory + "/" + file.name, file.text);
    }
  } else if (const auto* json = dynamic_cast<const HfTokenizer*>(tokenizer.tokenizer.get())) {
    copy_tokenizer_json(*json, add_bos, directory);
  }
  if (tokenizer.directory.empty()) return;
  for (const char* name : kTokenizerFiles) {
    const std::string from = str(tokenizer.directory, "/", name);
    if (exists(from)) write_file(str(directory, "/", name), read_text(from, Kind::kData));
  }
}

}  // namespace

std::vector<SafetensorsEntry> hf_tensors(const ModelConfig& model, WeightType type) {
  std::vector<SafetensorsEntry> tensors;
  for (const Unit& unit : make_param_table(model).units) {
    for (const Matrix& matrix : unit.matrices) {
      for (const Param& param : matrix.parts) {
        SafetensorsEntry& entry = tensors.emplace_back();
        entry.name = param.name;
        entry.dtype = format_of(type).name;
        for (int axis = 0; axis < param.shape.rank(); ++axis) entry.shape.push_back(param.shape[axis]);
      }
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return place_of(a.name) < place_of(b.name);
  });
  return tensors;
}

ExportReport export_hf(ExportSource& source, const ExportOptions& options, const std::string& out,
                       const Progress& progress) {
  const ModelConfig& model = source.config.model;
  if (options.type == WeightType::kF16) {
    fail(Kind::kConfig, "--dtype f16 is for GGUF; a Hugging Face directory is written in bf16 or f32");
  }
  if (model.hidden_size % model.num_attention_heads != 0) {
    log::warning("transformers refuses a hidden_size (", model.hidden_size, ") that num_attention_heads (",
                 model.num_attention_heads, ") does not divide; other readers may not");
  }
  StagedOutput staged(out, StagedOutput::What::kDirectory, Kind::kCheckpoint);
  const std::string& directory = staged.staging();
  ExportReport report;
  // The small files first, so that their errors appear at once.
  write_file(directory + "/config.json", render_hf_config(model, options.type, source.ids));
  write_file(directory + "/generation_config.json", render_generation_config(source.config.model, source.ids));
  write_tokenizer(source, options.add_bos, directory);
  const CheckpointManifest& manifest = source.reader.manifest();
  write_file(
      directory + "/README.md",
      render_model_card(manifest, source.config, options.type,
                        read_run_record(source.metrics_path(), manifest.point.state.step, source.reader.average())));

  const std::vector<ModelShard> shards = split_into_shards(hf_tensors(model, options.type), options.max_shard_bytes);
  if (shards.size() > 1) write_file(str(directory, "/", kModelIndex), render_index(shards));
  write_weights(source, shards, options.type, directory, progress, report);
  staged.commit();
  return report;
}

}  // namespace tokamak
