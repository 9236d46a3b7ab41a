#include "tokenizer/scan/normalization.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/scan/char_map.h"

namespace tokamak {

namespace {

#include "tokenizer/scan/normalization_tables.inc"

// Hangul syllables decompose by arithmetic: the Unicode Standard, section 3.12.
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 11172, kLeadingCount = 19;

constexpr uint8_t kMayChange = 255;

class Decompositions {
 public:
  Decompositions() {
    for (const std::span<const uint32_t> table : {std::span<const uint32_t>(kCanonical), {kCompatible}})
      for (size_t i = 0; i < table.size(); i += 1 + (table[i] & 255))
        (table.data() == kCanonical ? canonical_ : compatible_)[table[i] >> 8] = &table[i];
  }

  void append(char32_t code, bool compatible, std::vector<char32_t>& out) const {
    if (code - kSyllables < kSyllableCount) {
      const char32_t at = code - kSyllables;
      out.push_back(kLeading + at / (kVowelCount * kTrailingCount));
      out.push_back(kVowels + at / kTrailingCount % kVowelCount);
      if (at % kTrailingCount != 0) out.push_back(kTrailing + at % kTrailingCount);
      return;
    }
    for (const auto* table : {&compatible_, &canonical_}) {
      if (table == &compatible_ && !compatible) continue;
      const auto found = table->find(code);
      if (found == table->end()) continue;
      out.insert(out.end(), found->second + 1, found->second + 1 + (*found->second & 255));
      return;
    }
    out.push_back(code);
  }

 private:
  std::unordered_map<char32_t, const uint32_t*> canonical_, compatible_;
};

struct NormalTables {
  CharMap classes{kClassRuns};
  CharMap nfc{kNfcRuns};    // 0: a segment can begin here. 1 to 240: a mark's class, only its order can change.
  CharMap nfkc{kNfkcRuns};  // kMayChange: the rest.
  Decompositions decompositions;
  std::unordered_map<uint64_t, char32_t> compositions;  // by first << 32 | second

  NormalTables() {
    for (size_t i = 0; i < std::size(kCompositions); i += 3)
      compositions[uint64_t{kCompositions[i]} << 32 | kCompositions[i + 1]] = kCompositions[i + 2];
  }

  char32_t composed(char32_t first, char32_t second) const {  // 0 if the two do not compose
    if (first - kLeading < kLeadingCount && second - kVowels < kVowelCount)
      return kSyllables + ((first - kLeading) * kVowelCount + second - kVowels) * kTrailingCount;
    if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailingCount == 0 && second > kTrailing &&
        second < kTrailing + kTrailingCount)
      return first + second - kTrailing;
    const auto found = compositions.find(uint64_t{first} << 32 | second);
    return found == compositions.end() ? 0 : found->second;
  }
};

const NormalTables& normal_tables() {
  static const NormalTables tables;
  return tables;
}

// UAX #15 in three steps: decompose, sort marks by class, compose.
void append_normal_segment(std::string_view segment, bool compatible, std::string& out) {
  const NormalTables& tables = normal_tables();
  std::vector<char32_t> codes;
  for (size_t at = 0; at < segment.size();) {
    const Utf8Char c = decode_valid_utf8(segment.data() + at);
    tables.decompositions.append(c.code, compatible, codes);
    at += static_cast<size_t>(c.length);
  }
  const auto class_of = [&](char32_t c) { return tables.classes[c]; };
  for (auto at = codes.begin(); at != codes.end();) {
    const auto end = std::find_if(at, codes.end(), [&](char32_t c) { return class_of(c) == 0; });
    std::stable_sort(at, end, [&](char32_t a, char32_t b) { return class_of(a) < class_of(b); });
    at = end == codes.end() ? end : end + 1;
  }
  size_t starter = SIZE_MAX;
  size_t kept = 0;
  uint8_t last_class = 0;  // of the last kept character after the starter; 0 if there is none
  for (const char32_t code : codes) {
    const uint8_t own = class_of(code);
    const bool blocked = kept > starter + 1 && (last_class == 0 || last_class >= own);
    if (starter != SIZE_MAX && !blocked)
      if (const char32_t both = tables.composed(codes[starter], code)) {
        codes[starter] = both;
        continue;
      }
    if (own == 0) starter = kept;
    last_class = own;
    codes[kept++] = code;
  }
  for (size_t i = 0; i < kept; ++i) append_utf8(codes[i], out);
}

// Bytes that begin a segment of their own, or continue a character that does: those below `limit`, and those from
// `first` to `last`.
struct PlainBytes {
  unsigned char limit, first, last;

  bool has(char c) const {
    const auto byte = static_cast<unsigned char>(c);
    return byte < limit || (first <= byte && byte <= last);
  }
};

// Up to U+02FF, and from U+4000 to U+9FFF, NFC changes nothing. NFKC leaves ASCII alone.
constexpr PlainBytes kNfcPlain = {0xCC, 0xE4, 0xE9};
constexpr PlainBytes kNfkcPlain = {0x80, 0, 0};

// The end of the run of plain bytes from `at` on.
size_t plain_end(std::string_view text, size_t at, PlainBytes plain) {
  const auto all = [](unsigned char byte) { return _mm256_set1_epi8(static_cast<char>(byte)); };
  const auto within = [&](__m256i bytes, unsigned char least, unsigned char most) {
    const __m256i from_least = _mm256_sub_epi8(bytes, all(least));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(from_least, all(static_cast<unsigned char>(most - least))), from_least);
  };
  for (; at + 32 <= text.size(); at += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + at));
    const __m256i is_plain = _mm256_or_si256(within(bytes, 0, static_cast<unsigned char>(plain.limit - 1)),
                                             within(bytes, plain.first, plain.last));
    const auto others = ~static_cast<uint32_t>(_mm256_movemask_epi8(is_plain));
    if (others != 0) return at + static_cast<size_t>(std::countr_zero(others));
  }
  while (at < text.size() && plain.has(text[at])) ++at;
  return at;
}

struct Changing {
  size_t begin, end;  // a segment that may change; text.size() twice if there is none
};

// The first segment from `at`, a segment's begin, that may change.
Changing find_changing(std::string_view text, size_t at, const CharMap& quick, PlainBytes plain) {
  size_t begin = at;
  uint8_t last = 0;
  bool changes = false;
  while (at < text.size()) {
    if (plain.has(text[at])) {
      if (changes) return {begin, at};
      at = plain_end(text, at, plain);
      begin = at - 1;
      while ((text[begin] & 0xC0) == 0x80) --begin;
      last = 0;
      continue;
    }
    const Utf8Char c = decode_valid_utf8(text.data() + at);
    const uint8_t value = quick[c.code];
    if (value == 0) {
      if (changes) return {begin, at};
      begin = at;
    }
    changes |= value == kMayChange || (value != 0 && value < last);
    last = value;
    at += static_cast<size_t>(c.length);
  }
  return {changes ? begin : at, at};
}

void append_normal(std::string_view text, bool compatible, std::string& out) {
  const CharMap& quick = compatible ? normal_tables().nfkc : normal_tables().nfc;
  for (size_t at = 0; at < text.size();) {
    const Changing found = find_changing(text, at, quick, compatible ? kNfkcPlain : kNfcPlain);
    out.append(text, at, found.begin - at);
    if (found.begin < found.end)
      append_normal_segment(text.substr(found.begin, found.end - found.begin), compatible, out);
    at = found.end;
  }
}

}  // namespace

void append_nfc(std::string_view text, std::string& out) { append_normal(text, false, out); }
void append_nfkc(std::string_view text, std::string& out) { append_normal(text, true, out); }
size_t nfc_prefix(std::string_view text) { return find_changing(text, 0, normal_tables().nfc, kNfcPlain).begin; }

}  // namespace tokamak
