// Reads a .tiktoken file: lines of a piece's bytes in base64 and its rank, which is its id. Pattern and special tokens
// are not in the file; a preset names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/spec.h"

namespace tokamak {

TokenizerSpec parse_tiktoken(std::string_view text, const std::string& path, const std::string& preset);
TokenizerSpec read_tiktoken_file(const std::string& path, const std::string& preset);

std::string tiktoken_presets();  // the names, for messages
bool looks_like_tiktoken(std::string_view head);
// The name of a copy, from which load_tokenizer() knows the preset, and the reverse: "" for any other name.
std::string name_with_preset(const std::string& preset);
std::string preset_of_name(std::string_view name);

// The model of pieces with the rank of each: rank of a pair is that of its result, as tiktoken merges. For each of
// `pieces` (bytes, by id) of two bytes or more, all ways to cut it into two pieces.
std::vector<BpeMerge> merges_of_ranks(const std::vector<std::string>& pieces);
// The model of such pieces. Error(kData): one of the 256 bytes is missing, or a piece is there twice.
BpeSpec byte_level_model(const std::vector<std::string>& pieces, const std::string& path);
// The steps of a byte-level tokenizer with one pattern.
void set_byte_level_steps(std::string_view pattern, TokenizerSpec& spec);
// Error(kData): it is no base64 of 1 to 65535 bytes.
std::string base64_bytes(std::string_view text, const std::string& where);

}  // namespace tokamak
