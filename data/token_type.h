// Storage type of tokens in a shard of ours. The choice follows Megatron's optimal_dtype, so its readers agree. Our
// reader uses the code in the index.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace tokamak {

enum class TokenType : uint8_t { kInt32, kUint16 };

inline int64_t token_bytes(TokenType type) {
  switch (type) {
    case TokenType::kInt32:
      return 4;
    case TokenType::kUint16:
      return 2;
  }
  TOKAMAK_UNREACHABLE("token type ", static_cast<int>(type));
}
inline const char* token_type_name(TokenType type) {
  switch (type) {
    case TokenType::kInt32:
      return "int32";
    case TokenType::kUint16:
      return "uint16";
  }
  TOKAMAK_UNREACHABLE("token type ", static_cast<int>(type));
}
inline TokenType token_type_for(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::kUint16 : TokenType::kInt32;
}

}  // namespace tokamak
