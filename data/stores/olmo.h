// Raw tokens of OLMo's and Dolma's tokenizer, named .npy, and real NumPy files.
//
//   X.npy    := token[n]                       raw, in spite of the name; the type is known to whoever wrote it
//             | numpy header, token[n]         of an array with one dimension, in C order, little-endian
//   X.csv.gz := "start,end,id,src,loc\n"*      the documents of X.npy, in tokens
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/stores/token_file.h"

namespace tokamak {

// The layout of a NumPy file of `file_bytes` bytes that begins with `head` (its first kNumpyHead bytes, or all). Empty
// if it is none. Error(kData), naming `path`, if it is one that holds no ids in one dimension.
inline constexpr int64_t kNumpyHead = 4096;
std::optional<TokenLayout> parse_numpy_header(std::string_view head, int64_t file_bytes, const std::string& path);

// Appends the start of the document of one row of the .csv.gz. Error(kData), naming `where`, unless it begins where the
// one before it ended, `end`, which becomes its end, and lies within `tokens`.
void parse_document_row(std::string_view row, int64_t tokens, const std::string& where, int64_t& end,
                        std::vector<int64_t>& starts);

// `type` is needed for raw files. `delimiter` (-1: unknown) finds documents where there is no .csv.gz.
std::unique_ptr<TokenStore> open_olmo(const std::string& path, TokenElement type, int32_t delimiter, FilePool& pool);

}  // namespace tokamak
