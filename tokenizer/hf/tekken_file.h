// Reads Mistral's tekken.json: a pattern, pieces with ranks, and control tokens, which are never found in text.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/hf/spec.h"

namespace tokamak {

TokenizerSpec parse_tekken(std::string_view text, const std::string& path);
TokenizerSpec read_tekken_file(const std::string& path);
bool is_tekken_key(std::string_view key);  // a member of a tekken.json

}  // namespace tokamak
