// A checkpoint as one GGUF file for llama.cpp: weights in F32, F16 or BF16 (vectors always F32), the model's
// hyperparameters and the tokenizer. Streamed, like export_hf.
#pragma once

#include <string>
#include <vector>

#include "formats/gguf.h"
#include "interop/export_hf.h"
#include "interop/export_source.h"

namespace tokamak {

struct ExportGgufOptions {
  WeightType type = WeightType::kBF16;
  bool add_bos = false;  // HfTokenizerOptions::add_bos
};

// Writes the file `out` atomically; it must not exist. Error(kConfig) for anything that GGUF cannot express.
ExportReport export_gguf(ExportSource& source, const ExportGgufOptions& options, const std::string& out,
                         const Progress& progress);

// The keys of the file, and its tensors in their order.
GgufKeys gguf_keys(const ExportSource& source, const ExportGgufOptions& options);
struct GgufWeight {
  GgufTensor tensor;
  std::string source;  // Hugging Face's name
};
std::vector<GgufWeight> gguf_weights(const ModelConfig& model, WeightType type);

// The row in Hugging Face's order (half against half) of row `row` in interleaved order, for a q or k matrix.
int64_t half_split_row(int64_t row, int64_t head_size);

}  // namespace tokamak
