// The keys tokenizer.* of a GGUF file, as llama.cpp reads them (src/llama-vocab.cpp).
#pragma once

#include "formats/gguf.h"
#include "interop/export_source.h"

namespace tokamak {

// Error(kConfig), naming what llama.cpp cannot express. `add_bos`: prompts begin with BOS, even if the tokenizer's own
// file does not say so.
void add_gguf_tokenizer(const ExportSource& source, bool add_bos, GgufKeys& keys);

}  // namespace tokamak
