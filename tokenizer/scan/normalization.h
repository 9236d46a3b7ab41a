// Unicode normal forms NFC and NFKC (UAX #15), equal to Hugging Face tokenizers: that is Unicode 9.0, in which later
// characters have no decomposition and combining class 0.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

// Appends the normal form of `text` (valid UTF-8). Text that is in the form already is copied at memory speed if it is
// ASCII, and for NFC if it has no character from U+0300 on.
void append_nfc(std::string_view text, std::string& out);
void append_nfkc(std::string_view text, std::string& out);

// The length of a prefix, possibly all, that is its own NFC and that the rest cannot change. If this is text.size(), a
// caller need not copy the text.
size_t nfc_prefix(std::string_view text);

}  // namespace tokamak
