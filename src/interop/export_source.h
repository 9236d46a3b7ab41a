// An export to any format: its options, and its source, which is a checkpoint of any world size with its config and
// the tokenizer to include.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/reader.h"
#include "interop/hf_config.h"
#include "tensor/param_table.h"
#include "tokenizer/tokenizer.h"
#include "train/run_config.h"

namespace tokamak {

// The tokenizer of the export: one that we read, files to copy unchanged, or none.
struct ExportTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;  // null: none that we read
  std::string directory;                 // of Hugging Face files to copy; "" if none
};

struct ExportOptions {
  WeightType type = WeightType::kBF16;
  int64_t max_shard_bytes = 5'000'000'000;  // of a safetensors file
  bool add_bos = false;                     // the tokenizer prepends its BOS token
};

struct ExportReport {
  int64_t tensors = 0;
  int64_t weight_files = 0;
  int64_t bytes = 0;  // of the weight files
};

std::string run_directory(const CheckpointReader& reader);  // of the run that saved it
// Error(kCheckpoint), naming the differences, unless it holds exactly the weights of the table.
void check_is_model(const CheckpointReader& reader, const ParamTable& table);

struct ExportSource {
  CheckpointReader reader;
  RunConfig config;
  ExportTokenizer tokenizer;
  SpecialIds ids;

  std::optional<ModelConfig> unfolded = {};  // the checkpoint's model, if config.model has its embedding_norm folded in

  // Reads the f32 weights of `config`; valid while this object lives and is not moved.
  ReadParam weights();
  std::string metrics_path() const;  // of the checkpoint's run
};

// `tokenizer`: a tokenizer's file, a directory of Hugging Face tokenizer files, "none", or "": the run's copy.
// Error(kData) if it is missing, or has more pieces than the model has rows.
ExportSource make_export_source(CheckpointReader reader, const std::string& tokenizer);

}  // namespace tokamak
