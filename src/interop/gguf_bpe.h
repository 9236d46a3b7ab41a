// A byte-level BPE in llama.cpp's terms. llama.cpp has its patterns in its code, under names: a tokenizer.json is
// expressible if its pre-tokenizer and flags are those of a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/hf/hf_tokenizer.h"

namespace tokamak {

struct GgufBpe {
  std::string pre;                    // the name of its pre-tokenizer
  std::vector<std::string> tokens;    // by id
  std::vector<int32_t> types;         // PieceType
  std::vector<std::string> merges;    // "left right", by rank
  std::vector<std::string> warnings;  // what llama.cpp does otherwise
};

// Error(kConfig), naming the part of the file that llama.cpp cannot express.
GgufBpe gguf_bpe(const HfTokenizer& tokenizer);

// Entries of the vocabulary that its merges do not produce. With `ignore_merges`, a pretoken still becomes one.
int64_t unreachable_entries(const HfTokenizer& tokenizer);

std::string gguf_padding(int64_t id);  // the name of a row without a token

}  // namespace tokamak
