// Writes a SentencePiece BPE model as the files of Hugging Face's tokenizers, which then give the same ids as our
// Encoder. A literal "<s>" in text is text, as in SentencePiece (split_special_tokens).
//
// One known difference: in Hugging Face's result a text of just one user-defined symbol lacks the dummy prefix.
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

// All merges that give a normal piece, as "left right", in the order in which a tokenizer tries them.
std::vector<std::string> bpe_merges(const ModelProto& model);

}  // namespace tokamak
