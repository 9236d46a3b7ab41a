// Reads a tokenizer.json, the file of Hugging Face's `tokenizers`, and what lies beside it.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/hf/spec.h"

namespace tokamak {

// From the file's text. Error(kData), naming `path` and the field, for whatever we would not do exactly as
// Hugging Face's `tokenizers` 0.23 does. Truncation and padding have no effect on data sets; they become remarks.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& path);

// The file, and the ids and the chat template that tokenizer_config.json, special_tokens_map.json,
// generation_config.json and chat_template.jinja in its directory name (special_ids.h).
TokenizerSpec read_tokenizer_json(const std::string& path);

}  // namespace tokamak
