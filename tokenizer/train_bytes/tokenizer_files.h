// Writes a trained byte-level BPE as Hugging Face's tokenizer.json and tokenizer_config.json.
#pragma once

#include <string>

#include "tokenizer/train_bytes/bytes_pattern.h"
#include "tokenizer/train_bytes/learn_merges.h"

namespace tokamak {

struct SpecialTokens {
  std::vector<std::string> all;  // the first pieces, in this order
  std::string bos, eos;          // of these; "": none
};

std::string render_tokenizer_json(const LearnedMerges& learned, const BytesPattern& pattern,
                                  const SpecialTokens& special);
std::string render_tokenizer_config(const SpecialTokens& special);

}  // namespace tokamak
