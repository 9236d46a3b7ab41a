// Storage type of tokens in a shard. The choice follows Megatron's optimal_dtype, so its readers agree. Our reader uses
// the code in the index.
#pragma once

#include <cstdint>

namespace tokamak {

enum class TokenType : uint8_t { kInt32 = 4, kUint16 = 8 };  // the values are the dtype codes of an .idx file

inline int64_t token_bytes(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }
inline const char* token_type_name(TokenType type) { return type == TokenType::kUint16 ? "uint16" : "int32"; }
inline TokenType token_type_for(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

}  // namespace tokamak
