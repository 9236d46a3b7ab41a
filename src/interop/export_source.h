// The source of an export: a checkpoint of any world size, its config, and the tokenizer to include.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/reader.h"
#include "interop/hf_config.h"
#include "tokenizer/model_proto.h"
#include "train/run_config.h"

namespace tokamak {

// The tokenizer of the export: a SentencePiece model, files to copy unchanged, or none.
struct ExportTokenizer {
  std::string model_path;           // path of a SentencePiece model; "" if there is none
  std::optional<ModelProto> model;  // parsed and supported
  std::string directory;            // of Hugging Face files to copy; "" if none
};

struct ExportSource {
  CheckpointReader reader;
  RunConfig config;
  ExportTokenizer tokenizer;
  SpecialIds ids;

  ReadParam weights();               // the masters; valid while this object lives and is not moved
  std::string metrics_path() const;  // of the checkpoint's run
};

// `tokenizer`: a SentencePiece model, a directory of Hugging Face tokenizer files, "none", or "": the run's copy.
// Error(kData) if it is missing, or has more pieces than the model has rows.
ExportSource make_export_source(CheckpointReader reader, const std::string& tokenizer);

}  // namespace tokamak
