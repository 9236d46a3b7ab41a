// A checkpoint as a Hugging Face directory: safetensors in one file or several, config.json, generation_config.json,
// the tokenizer's files and a model card. Streamed: memory is bounded by a piece of a few MiB.
#pragma once

#include <cstdint>
#include <string>

#include "interop/export_source.h"
#include "interop/weight_stream.h"

namespace tokamak {

struct ExportHfOptions {
  WeightType type = WeightType::kBF16;  // kF16 is refused: it lacks the range of bf16, in which models are trained
  int64_t max_shard_bytes = 5'000'000'000;
  bool add_bos = false;  // HfTokenizerOptions::add_bos
};

struct ExportReport {
  int64_t tensors = 0;
  int64_t weight_files = 0;
  int64_t bytes = 0;  // of the weight files
};

// Writes the directory `out` atomically. It must not exist, or must be empty.
ExportReport export_hf(ExportSource& source, const ExportHfOptions& options, const std::string& out,
                       const Progress& progress);

// The model's tensors in the order of transformers' state_dict, layer by layer, without offsets.
std::vector<SafetensorsEntry> hf_tensors(const ModelConfig& model, WeightType type);

}  // namespace tokamak
