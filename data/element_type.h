// Types of the tokens in files of others. Ours has two of them (token_type.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/options.h"
#include "data/token_type.h"

namespace tokamak {

inline int64_t element_bytes(TokenElement type) {
  switch (type) {
    case TokenElement::kUint8:
    case TokenElement::kInt8:
      return 1;
    case TokenElement::kUint16:
    case TokenElement::kInt16:
      return 2;
    case TokenElement::kUint32:
    case TokenElement::kInt32:
      return 4;
    case TokenElement::kUint64:
    case TokenElement::kInt64:
      return 8;
    case TokenElement::kAuto:
      break;
  }
  TOKAMAK_UNREACHABLE("token element ", static_cast<int>(type));
}

inline const std::string& element_name(TokenElement type) { return enum_names(type)[static_cast<size_t>(type)]; }

inline TokenElement element_of(TokenType type) {
  return type == TokenType::kUint16 ? TokenElement::kUint16 : TokenElement::kInt32;
}

// The smallest of our types that holds the ids of `type`, if the vocabulary is unknown.
inline TokenType token_type_for(TokenElement type) {
  return type == TokenElement::kUint8 || type == TokenElement::kUint16 ? TokenType::kUint16 : TokenType::kInt32;
}

}  // namespace tokamak
