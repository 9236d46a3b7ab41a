// SentencePiece's identity normaliser. A space becomes U+2581, an invalid byte U+FFFD, and one U+2581 is prepended if
// the model has add_dummy_prefix. Nothing else changes.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // U+2581, how a space is written inside pieces

enum class DummyPrefix { kNone, kAdd };

// Returns a view into `buffer`, which grows as needed and may be reused. The result is valid UTF-8; the empty text
// stays empty.
std::string_view normalize(std::string_view text, DummyPrefix prefix, std::string& buffer);

}  // namespace tokamak
