// The bytes of a page -> UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

// Takes the first charset of this list that is there:
//   1. a byte order mark. 2. `declared`, of the HTTP header. 3. a <meta> in the first 1,024 bytes.
//   4. UTF-8, if the bytes are valid. 5. what uchardet detects.
// Labels mean what browsers make of them: "iso-8859-1" is windows-1252 (encoding.spec.whatwg.org, section 4.2). Bytes
// without a character become U+FFFD.
std::string page_to_utf8(std::string_view bytes, std::string_view declared);

// Replaces bytes that are not UTF-8 by U+FFFD.
std::string valid_utf8(std::string_view bytes);

}  // namespace tokamak
