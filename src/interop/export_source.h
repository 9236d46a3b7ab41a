// What an export reads: a checkpoint of any world size, the config that lies in it, and the tokenizer to ship.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/reader.h"
#include "interop/hf_config.h"
#include "tokenizer/model_proto.h"
#include "train/run_config.h"

namespace tokamak {

// The tokenizer that goes along: a SentencePiece model, files to be copied as they are, or none.
struct ExportTokenizer {
  std::string model_path;           // of a SentencePiece model; "" if it is none
  std::optional<ModelProto> model;  // read, and supported
  std::string directory;            // of Hugging Face files to copy; "" if none
};

struct ExportSource {
  CheckpointReader reader;
  RunConfig config;
  ExportTokenizer tokenizer;
  SpecialIds ids;

  ReadParam weights();               // the masters; valid while this lives and stays where it is
  std::string metrics_path() const;  // of the run that the checkpoint lies in
};

// `tokenizer`: a SentencePiece model, a directory of Hugging Face tokenizer files, "none", or "": the run's own copy
// beside its checkpoints. Error(kData) where there is none, or it has more pieces than the model rows.
ExportSource make_export_source(CheckpointReader reader, const std::string& tokenizer);

}  // namespace tokamak
