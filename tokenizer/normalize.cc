#include "tokenizer/normalize.h"

#include <cstring>

#include "base/utf8.h"

namespace tokamak {

namespace {

char* append(char* out, std::string_view bytes) {
  std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

}  // namespace

std::string_view normalize(std::string_view text, DummyPrefix prefix, std::string& buffer) {
  if (text.empty()) return {};
  const size_t most = 3 * (text.size() + 1);  // upper bound: every byte a space, and the prefix
  if (buffer.size() < most) buffer.resize(most);
  char* out = buffer.data();
  if (prefix == DummyPrefix::kAdd) out = append(out, kSpaceSymbol);
  for (size_t i = 0; i < text.size();) {
    const char byte = text[i];
    if (byte == ' ') {
      out = append(out, kSpaceSymbol);
      ++i;
    } else if (static_cast<unsigned char>(byte) < 0x80) {
      *out++ = byte;
      ++i;
    } else {
      const Utf8Char c = decode_utf8(text.substr(i));
      const auto length = static_cast<size_t>(c.length);
      out = append(out, c.code == kInvalidUtf8 ? kReplacementChar : text.substr(i, length));
      i += length;
    }
  }
  return {buffer.data(), static_cast<size_t>(out - buffer.data())};
}

}  // namespace tokamak
