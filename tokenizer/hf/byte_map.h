// The printable characters that byte-level vocabularies write bytes as (GPT-2's bytes_to_unicode). The bytes 21-7E,
// A1-AC and AE-FF are themselves; the other 68 are U+0100, U+0101, ... in byte order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

char32_t printable_of_byte(unsigned char byte);
int byte_of_printable(char32_t character);  // -1: it is not one of the 256

// Appends each byte as its character, in UTF-8.
void append_printable_bytes(std::string_view bytes, std::string& text);
// The bytes that `text` (valid UTF-8) stands for; nothing if one of its characters is not of the 256.
std::optional<std::string> bytes_of_printable(std::string_view text);

}  // namespace tokamak
