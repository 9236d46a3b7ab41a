// Small tokenizer files, written by tests.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

// A tokenizer.json of a byte-level BPE: the 256 bytes, then `pieces` (in printable characters), with `merges` like
// "a b". `members` are further members of the file, like ", \"normalizer\": null".
std::string byte_level_json(const std::vector<std::string>& pieces, const std::vector<std::string>& merges,
                            const std::string& added_tokens = "[]", const std::string& members = "");
// A .tiktoken file: the 256 bytes, then `pieces`.
std::string tiktoken_text(const std::vector<std::string>& pieces);
// A tekken.json with 20 control tokens, the 256 bytes, then `pieces`.
std::string tekken_json(const std::vector<std::string>& pieces);

}  // namespace tokamak
