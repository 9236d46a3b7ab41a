#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <set>

#include "scanned.h"
#include "tokenizer/scan/unicode_tables.h"

using namespace tokamak;

namespace {

struct Compared {
  explicit Compared(std::string_view family)
      : name(family),
        reference(patterns_named(family)),
        scalar(make_scanner(patterns_named(family), Simd::kNone)),
        avx2(make_scanner(patterns_named(family), Simd::kAvx2)),
        best(make_scanner(patterns_named(family), Simd::kBest)) {}

  void compare(std::string_view text) const {
    const std::vector<uint32_t> wanted = reference.ends(text);
    if (ends_of(*scalar, text) != wanted) differ("scalar", *scalar, text);
    if (ends_of(*avx2, text) != wanted) differ("AVX2", *avx2, text);
    if (ends_of(*best, text) != wanted) differ("best", *best, text);
  }
  // With buffers of other sizes too.
  void compare_buffers(std::string_view text) const {
    const std::vector<uint32_t> wanted = reference.ends(text);
    for (const size_t buffer : {1, 3, 64, 65, 256}) {
      if (ends_of(*scalar, text, buffer) != wanted) differ("scalar", *scalar, text);
      if (ends_of(*avx2, text, buffer) != wanted) differ("AVX2", *avx2, text);
      if (ends_of(*best, text, buffer) != wanted) differ("best", *best, text);
    }
  }
  void differ(const char* path, const Scanner& scanner, std::string_view text) const {
    std::vector<std::string> wanted;
    size_t at = 0;
    for (const uint32_t end : reference.ends(text)) {
      wanted.emplace_back(text.substr(at, end - at));
      at = end;
    }
    std::vector<std::string> got = pieces_of(scanner, text);
    for (auto* pieces : {&got, &wanted}) {
      if (pieces->size() > 40) pieces->resize(40);
      for (std::string& piece : *pieces) piece.resize(std::min<size_t>(piece.size(), 40));
    }
    FAIL(name << " " << path << " " << Catch::StringMaker<std::string>::convert(std::string(text.substr(0, 300)))
              << ": " << Catch::StringMaker<std::vector<std::string>>::convert(got) << " instead of "
              << Catch::StringMaker<std::vector<std::string>>::convert(wanted));
  }

  std::string name;
  ReferenceScanner reference;
  std::unique_ptr<Scanner> scalar, avx2, best;
};

template <class Check>
void for_each_family(Check check) {
  for (const std::string_view family : scanner_families()) check(Compared(family));
}

// Some characters of each class, and of each length in UTF-8.
const std::vector<std::string>& representatives() {
  static const std::vector<std::string> list = {
      "a",          "s",          "t",         "r",          "e",
      "l",          "A",          "S",         "Z",          "\u017F",
      "é",          "É",          "ǅ",         "ʰ",          "ª",
      "中",         "あ",         "ー",        "・",         "゛",
      "\u3040",     "가",         "𝐀",         "𝐚",          "𠀀",
      "1",          "9",          "٣",         "Ⅷ",          "½",
      "𝟙",          " ",          "\t",        "\u00A0",     "\u2003",
      "\u3000",     "\n",         "\r",        "\u0085",     "\u2028",
      "-",          "/",          "'",         "!",          "$",
      "_",          "’",          "“",         "€",          "😀",
      "\u0301",     "\u093F",     "\uFE0F",    "\U000E0100", std::string(1, '\0'),
      "\x1C",       "\u200D",     "\uFEFF",    "\uE000",     "\u0378",
      "\U00011DE3", "\U00016FF5", "\U000F0000"};
  return list;
}

std::string utf8(uint32_t code) {
  std::string bytes;
  const auto put = [&](uint32_t byte) { bytes += static_cast<char>(byte); };
  if (code < 0x80) return put(code), bytes;
  if (code < 0x800) return put(0xC0 | code >> 6), put(0x80 | (code & 0x3F)), bytes;
  if (code < 0x10000) return put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F)), bytes;
  put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  return bytes;
}

std::string random_text(std::mt19937_64& random, size_t most) {
  const std::vector<std::string>& all = representatives();
  std::string text;
  const size_t characters = random() % (most + 1);
  // Few kinds of characters in a text make long runs, many make many borders.
  std::vector<std::string> kinds;
  for (size_t i = 0, n = 1 + random() % 12; i < n; ++i) kinds.push_back(all[random() % all.size()]);
  const bool ascii = random() % 2 == 0;
  while (text.size() < characters) {
    const std::string& one = random() % 16 == 0 ? all[random() % all.size()] : kinds[random() % kinds.size()];
    if (!ascii || one.size() == 1 || random() % 64 == 0) text += one;
    if (random() % 8 == 0) text += "a 's1\n  A/"[random() % 10];
  }
  return text;
}

}  // namespace

TEST_CASE("each scanner cuts every short string as its pattern does") {
  const char* const characters[] = {"a", "A", "'", "s", "1", " ", "\n", "-", "\u0301", "中", "ª", "/"};
  const char* const length = std::getenv("TOKAMAK_SCAN_LENGTH");  // 5 takes minutes
  const int most = length ? std::atoi(length) : 4;
  for_each_family([&](const Compared& family) {
    std::vector<std::string> strings = {""};
    for (int i = 0; i < most; ++i) {
      std::vector<std::string> longer;
      for (const std::string& text : strings)
        for (const char* c : characters) longer.push_back(text + c);
      strings = std::move(longer);
      for (const std::string& text : strings) family.compare(text);
    }
  });
}

TEST_CASE("each scanner cuts random strings as its pattern does, by buffers of any size") {
  for_each_family([](const Compared& family) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 4000; ++i) family.compare(random_text(random, 200));
    for (int i = 0; i < 200; ++i) family.compare_buffers(random_text(random, 700));
  });
}

TEST_CASE("each scanner cuts runs of any length as its pattern does", "[large]") {
  for_each_family([](const Compared& family) {
    for (const std::string& one : representatives()) {
      for (const size_t length : {14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 255, 256, 257}) {
        std::string run;
        for (size_t i = 0; i < length; ++i) run += one;
        for (const char* before : {"", "a", " ", "!"})
          for (const char* after : {"", "a", "\n"}) family.compare(before + run + after);
      }
    }
    for (const char* one : {"a", "A", "1", " ", "\n", "-", "/", "中", "\u0301"}) {
      for (const size_t length : {65535, 65536, 65537}) {
        std::string run;
        for (size_t i = 0; i < length; ++i) run += one;
        family.compare(run);
        family.compare("x" + run + "y");
      }
    }
  });
}

TEST_CASE("each scanner cuts as its pattern does at every offset from a border of 64 bytes") {
  const char* const middles[] = {"don't",      "'s's",        " -word",
                                 "--word",     "a\n \n  b",   "!\n//\nx",
                                 "1234567",    "AxªB",        "camelCaseHTTPServer",
                                 "can'ts",     "  \n\n\t x",  "’s it’s",
                                 "中ABC中Abc", "é\u0301e'LL", "\u0301AB",
                                 "!!\u0301a",  " \u00A0 x",   "/\n/a"};
  for_each_family([&](const Compared& family) {
    for (const char* middle : middles)
      for (size_t offset = 0; offset <= 70; ++offset)
        for (const char* fill : {"x", " y", "\n"}) {
          std::string text;
          while (text.size() < offset) text += fill;
          family.compare(text + middle + text);
          family.compare(text + middle);
        }
  });
}

TEST_CASE("each scanner knows the first and the last character of every category's run as its pattern does") {
  const bool all = std::getenv("TOKAMAK_SCAN_ALL") != nullptr;  // every character; half a minute
  std::set<uint32_t> runs;
  for (const uint32_t run : category_runs()) runs.insert(run >> 5);
  for_each_family([&](const Compared& family) {
    for (uint32_t first = 0; first < 0x110000; first += 0x400) {
      std::string text;
      for (uint32_t code = first; code < first + 0x400; ++code) {
        const bool border = runs.contains(code) || runs.contains(code + 1);
        if ((code >= 0xD800 && code < 0xE000) || (!border && !all && code % 61 != 0)) continue;
        const std::string c = utf8(code);
        text += "a" + c + "a " + c + "1" + c + c + "\n";
      }
      family.compare(text);
    }
  });
}
