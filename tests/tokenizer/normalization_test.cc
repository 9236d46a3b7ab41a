#include "tokenizer/scan/normalization.h"
#include "base/utf8.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

std::string nfc(std::string_view text) {
  std::string out = "kept ";
  append_nfc(text, out);
  return out.substr(5);
}
std::string nfkc(std::string_view text) {
  std::string out;
  append_nfkc(text, out);
  return out;
}

}  // namespace

// Each expectation is the answer of tokenizers 0.23.3.
TEST_CASE("NFC is that of Unicode 9.0") {
  CHECK(nfc("e\u0301 e\u0300\u0301") == "\u00E9 \u00E8\u0301");
  CHECK(nfc("a\u0301\u0316") == "\u00E1\u0316");
  CHECK(nfc("q\u0301\u0316") == "q\u0316\u0301");
  CHECK(nfc("a\u0316\u0301") == "\u00E1\u0316");
  CHECK(nfc("a\u07FD\u0301") == "a\u07FD\u0301");                // U+07FD is a mark since Unicode 11
  CHECK(nfc("\U00011935\U00011930") == "\U00011935\U00011930");  // composes since Unicode 13
  CHECK(nfc("\u1100\u1161\u11A8 \uAC00\u11A8 \uAC01\u11A8") == "\uAC01 \uAC01 \uAC01\u11A8");
  CHECK(nfc("\u212B \u2126 \uF900") == "\u00C5 \u03A9 \u8C48");
  CHECK(nfc("\u0958") == "\u0915\u093C");  // a composition exclusion
  CHECK(nfc("") == "");
  CHECK(nfc("\u0301") == "\u0301");
}

TEST_CASE("NFKC is that of Unicode 9.0") {
  CHECK(nfkc("\uFB01\u00BD\u3000\uFF21\u00AA") == "fi1\u20442 Aa");
  CHECK(nfkc("\u32FF") == "\u32FF");  // decomposes since Unicode 12.1
  CHECK(nfkc("\uFF76\uFF9E") == "\u30AC");
  CHECK(nfkc("\uFDFA").size() == 33);
}

TEST_CASE("text that is in NFC is found to be so, at every distance from a border of 32 bytes") {
  for (size_t before = 0; before < 40; ++before)
    for (size_t after = 0; after < 40; ++after) {
      const std::string a(before, 'a'), b(after, 'b');
      for (const char* same : {"", "\u00E9", "q\u0334\u0316", "中", "😀", "\u0915\u094D\u0930"}) {
        const std::string text = a + same + b;
        CHECK(nfc_prefix(text) == text.size());
        CHECK(nfc(text) == text);
      }
      const std::string text = a + "ce\u0301" + b;
      CHECK(nfc_prefix(text) == before + 1);
      CHECK(nfc(text) == a + "c\u00E9" + b);
    }
}

TEST_CASE("NFC changes no character from U+4000 to U+9FFF, and what stands around it") {
  for (char32_t code = 0x4000; code < 0xA000; ++code) {
    std::string one;
    append_utf8(code, one);
    std::string text;
    for (int i = 0; i < 12; ++i) text += one;
    text += "\u0301\u0316" + one + "e\u0301";
    if (nfc(text) != text.substr(0, 36) + "\u0316\u0301" + one + "\u00E9") FAIL("U+" << std::hex << uint32_t{code});
  }
}
