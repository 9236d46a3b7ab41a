// A SentencePiece BPE model in the files that Hugging Face's tokenizers read, so that they cut text as our Encoder
// does, id for id. A literal "<s>" in text is text, as in SentencePiece (split_special_tokens).
//
// One known difference: a text that consists of one user-defined symbol and nothing else lacks the dummy prefix there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/model_proto.h"

namespace tokamak {

struct HfTokenizerOptions {
  bool add_bos = false;  // the tokenizer puts its BOS token before each text, as the training data had it
  int64_t max_length = 0;
};

struct TextFile {
  std::string name;
  std::string text;
};

// tokenizer.json, tokenizer_config.json and special_tokens_map.json. `model` has passed check_supported; Error(kData)
// naming `source` where tokenizer.json could not express it exactly.
std::vector<TextFile> render_hf_tokenizer(const ModelProto& model, const std::string& source,
                                          const HfTokenizerOptions& options);

// The merges that make each normal piece, in the order in which they are tried: "left right".
std::vector<std::string> bpe_merges(const ModelProto& model);

}  // namespace tokamak
