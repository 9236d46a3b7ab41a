// BOS, EOS, UNK, PAD and the chat template: transformers keeps them in files beside tokenizer.json, by name.
#pragma once

#include <string>

#include "tokenizer/hf/spec.h"

namespace tokamak {

inline constexpr const char* kFilesBesideTokenizerJson[] = {"tokenizer_config.json", "special_tokens_map.json",
                                                            "generation_config.json", "chat_template.jinja"};

// Fills the ids and the template of `spec` from the files in `directory`. The first of these that says it counts:
// tokenizer_config.json, special_tokens_map.json, generation_config.json. An id stays -1 if no file names it; a name
// that is no token becomes a remark. Error(kData) for a damaged file.
void read_special_ids(const std::string& directory, TokenizerSpec& spec);

// The text of a special_tokens_map.json that names one token.
std::string special_tokens_map(const std::string& name, std::string_view token);

// The id of a piece or an added token by its text; -1: there is none.
int32_t find_token(const TokenizerSpec& spec, std::string_view text);

}  // namespace tokamak
