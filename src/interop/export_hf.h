// A checkpoint as a Hugging Face directory: safetensors in one file or several, config.json, generation_config.json,
// the tokenizer's files and a model card. It passes weights in pieces of a few MiB, so memory is bounded.
#pragma once

#include <string>
#include <vector>

#include "interop/export_source.h"

namespace tokamak {

// Writes the directory `out` atomically. It must not exist, or must be empty. Error(kConfig) for kF16: it
// lacks the range of bf16, in which models are trained.
ExportReport export_hf(ExportSource& source, const ExportOptions& options, const std::string& out,
                       const Progress& progress);

// The model's tensors in the order of transformers' state_dict, layer by layer. begin and end stay 0.
std::vector<SafetensorsEntry> hf_tensors(const ModelConfig& model, WeightType type);

}  // namespace tokamak
