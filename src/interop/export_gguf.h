// A checkpoint as one GGUF file for llama.cpp: weights in F32, F16 or BF16 (vectors always F32), the model's
// hyperparameters and the tokenizer. Memory is bounded as in export_hf.
#pragma once

#include <cstdint>
#include <string>

#include "interop/export_source.h"

namespace tokamak {

// Writes the file `out` atomically; it must not exist. Error(kConfig) for anything that GGUF cannot express.
ExportReport export_gguf(ExportSource& source, const ExportOptions& options, const std::string& out,
                         const Progress& progress);

// Row `row` of GGUF's interleaved q or k matrix is this row of Hugging Face's, whose pairs lie half a head apart.
int64_t half_split_row(int64_t row, int64_t head_size);

}  // namespace tokamak
