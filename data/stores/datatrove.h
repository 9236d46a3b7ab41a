// A store of datatrove (and nanotron): X.ds, with X.ds.index and X.ds.metadata where it wrote them.
//
//   X.ds          := tokens, u16 or u32; no header
//   X.ds.index    := u64 end[documents]            in tokens, ascending; the last one is the number of tokens
//   X.ds.metadata := "TOKENIZER|BYTES\nTOKENS\n..."  text; BYTES of a token, 2 or 4
//   X.ds.loss     := one byte per token            a loss mask, which is refused
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/stores/token_file.h"

namespace tokamak {

struct DatatroveMetadata {
  std::string tokenizer;  // as datatrove names it: a repository or a file
  int64_t token_bytes = 0;
  int64_t tokens = 0;
};

// Error(kData), naming `path`, unless it is the metadata of one .ds file.
DatatroveMetadata parse_datatrove_metadata(std::string_view text, const std::string& path);

// `delimiter` finds the documents if there is no index; -1: unknown. `type` is then needed if there is no metadata
// either. Error(kData) if sizes do not fit each other, or there is a loss mask.
std::unique_ptr<TokenStore> open_datatrove(const std::string& path, TokenElement type, int32_t delimiter,
                                           FilePool& pool);

}  // namespace tokamak
