// Writes a SentencePiece BPE model as the files of Hugging Face's tokenizers, which then give the same ids as our
// Encoder. A literal "<s>" in text is text, as in SentencePiece (split_special_tokens).
//
// One known difference: there, a text that consists of one user-defined symbol lacks the dummy prefix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/model_proto.h"

namespace tokamak {

struct HfTokenizerOptions {
  bool add_bos = false;  // the tokenizer prepends its BOS token to each text, as in the training data
  int64_t max_length = 0;
};

struct TokenizerFile {
  std::string name;
  std::string text;
};

// tokenizer.json, tokenizer_config.json and special_tokens_map.json. `model` must pass check_supported; Error(kData)
// naming `source` if tokenizer.json cannot express it exactly.
std::vector<TokenizerFile> render_hf_tokenizer(const ModelProto& model, const std::string& source,
                                               const HfTokenizerOptions& options);

// The merges of each normal piece, in the order in which they are tried: "left right".
std::vector<std::string> bpe_merges(const ModelProto& model);

}  // namespace tokamak
