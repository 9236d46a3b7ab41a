// Up to 64 characters as masks: bit i is character i. Character 0 begins a piece, so no window depends on another. The
// borders of pieces follow from shifts and additions of the masks.
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"
#include "tokenizer/scan/char_classes.h"

namespace tokamak {

constexpr int kWindow = 64;

struct Window {
  int size = 0;        // characters
  bool final = false;  // the text ends after them
  uint64_t letter = 0, number = 0, white = 0, newline = 0;
  uint64_t upper = 0, lower = 0;  // letters with a case: Lu and Lt, Ll
  uint64_t mark = 0, punctuation = 0, cjk = 0;
  uint64_t space = 0, apostrophe = 0, slash = 0;  // U+0020, U+0027, U+002F
  const unsigned char* bytes = nullptr;  // of each character: its byte if ASCII, kLongS, else 0x80; 3 more are readable

  uint64_t known() const { return size == kWindow ? ~uint64_t{0} : (uint64_t{1} << size) - 1; }
};

constexpr unsigned char kLongS = 0xFF;  // U+017F, which (?i:s) matches

// The masks of 64 bytes, by AVX2 and by AVX-512.
struct Avx2 {
  static uint64_t high_bytes(const unsigned char* p) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_loadu_si256(v + 1)))} << 32 |
           static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_loadu_si256(v)));
  }

  static void classify(const unsigned char* p, Window& w) {
    for (int half = 0; half < 2; ++half) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * half));
      const auto all = [](char c) { return _mm256_set1_epi8(c); };
      const auto mask = [half](__m256i is) {
        return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(is))} << 32 * half;
      };
      const auto within = [&](__m256i from_zero, char most) {
        return mask(_mm256_cmpeq_epi8(_mm256_min_epu8(from_zero, all(most)), from_zero));
      };
      const auto equals = [&](char c) { return mask(_mm256_cmpeq_epi8(v, all(c))); };
      w.letter |= within(_mm256_sub_epi8(_mm256_or_si256(v, all(0x20)), all('a')), 25);
      w.lower |= mask(_mm256_slli_epi16(v, 2));
      w.number |= within(_mm256_sub_epi8(v, all('0')), 9);
      w.newline |= equals('\n') | equals('\r');
      w.space |= equals(' ');
      w.white |= within(_mm256_sub_epi8(v, all('\t')), 4);
      w.apostrophe |= equals('\'');
      w.slash |= equals('/');
      w.punctuation |= within(_mm256_sub_epi8(v, all('!')), '~' - '!');
    }
  }

  // Writes the number of each bit, plus `base`. May write 16 more than there are.
  static uint32_t* write_bits(uint64_t bits, uint32_t base, uint32_t* out) {
    uint32_t* const end = out + std::popcount(bits);
    do {
      for (int i = 0; i < 8; ++i, bits &= bits - 1) *out++ = base + static_cast<uint32_t>(std::countr_zero(bits));
    } while (bits != 0);
    return end;
  }
};

#define TOKAMAK_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2")))

struct Avx512 {
  static bool here() {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2");
  }

  TOKAMAK_AVX512 static uint64_t high_bytes(const unsigned char* p) {
    return _mm512_movepi8_mask(_mm512_loadu_si512(p));
  }

  TOKAMAK_AVX512 static void classify(const unsigned char* p, Window& w) {
    const __m512i v = _mm512_loadu_si512(p);
    const __m512i lower = _mm512_or_si512(v, _mm512_set1_epi8(0x20));
    w.letter = _mm512_cmple_epu8_mask(_mm512_sub_epi8(lower, _mm512_set1_epi8('a')), _mm512_set1_epi8(25));
    w.lower = _mm512_test_epi8_mask(v, _mm512_set1_epi8(0x20));
    w.number = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8('0')), _mm512_set1_epi8(9));
    w.newline = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\n')) | _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\r'));
    w.space = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8(' '));
    w.white = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8('\t')), _mm512_set1_epi8(4));
    w.apostrophe = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('\''));
    w.slash = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8('/'));
    w.punctuation = _mm512_cmple_epu8_mask(_mm512_sub_epi8(v, _mm512_set1_epi8('!')), _mm512_set1_epi8('~' - '!'));
  }

  // maskz with all ones spares a false warning of GCC 12.
  TOKAMAK_AVX512 static uint32_t* write_bits(uint64_t bits, uint32_t base, uint32_t* out) {
    alignas(64) static constexpr auto kNumbers = [] {
      std::array<unsigned char, 64> numbers{};
      for (size_t i = 0; i < 64; ++i) numbers[i] = static_cast<unsigned char>(i);
      return numbers;
    }();
    alignas(64) unsigned char packed[64];
    _mm512_store_si512(packed, _mm512_maskz_compress_epi8(bits, _mm512_load_si512(kNumbers.data())));
    const __m512i from = _mm512_set1_epi32(static_cast<int>(base));
    const int count = std::popcount(bits);
    int at = 0;
    do {
      const __m128i some = _mm_load_si128(reinterpret_cast<const __m128i*>(packed + at));
      _mm512_storeu_si512(out + at, _mm512_add_epi32(from, _mm512_maskz_cvtepu8_epi32(0xFFFF, some)));
      at += 16;
    } while (at < count);
    return out + count;
  }
};

// The first `size` of 64 ASCII characters at `p`; bytes from `size` on may be anything.
template <class Vectors>
inline __attribute__((always_inline)) Window ascii_window(const unsigned char* p, int size, bool final) {
  Window w;
  w.size = size;
  w.final = final;
  w.bytes = p;
  Vectors::classify(p, w);
  const uint64_t known = w.known();
  w.letter &= known;
  w.upper = w.letter & ~w.lower;  // classify() has set `lower` where bit 5 is
  w.lower &= w.letter;
  w.number &= known;
  w.newline &= known;
  w.space &= known;
  w.white = (w.white & known) | w.space;
  w.apostrophe &= known;
  w.slash &= known;
  w.punctuation &= known & ~w.letter & ~w.number;
  return w;
}

// As many characters as a window has, of any kind, one table look-up each.
struct DecodedWindow {
  alignas(32) unsigned char flags[kWindow];
  alignas(32) unsigned char bytes[kWindow + 32];
  uint32_t offsets[kWindow + 1];  // in the text, and the end of the last

  Window decode(std::string_view text, size_t at, const CharMap& classes) {
    const auto* p = reinterpret_cast<const unsigned char*>(text.data());
    int n = 0;
    for (; n < kWindow && at < text.size(); ++n) {
      offsets[n] = static_cast<uint32_t>(at);
      uint32_t code = p[at];
      uint32_t seen = code;
      if (code < 0x80) {
        ++at;
      } else if (code < 0xE0) {
        code = (code & 0x1F) << 6 | (p[at + 1] & 0x3F);
        seen = code == 0x17F ? kLongS : 0x80;
        at += 2;
      } else if (code < 0xF0) {
        code = (code & 0x0F) << 12 | (p[at + 1] & 0x3FU) << 6 | (p[at + 2] & 0x3F);
        seen = 0x80;
        at += 3;
      } else {
        code = (code & 0x07) << 18 | (p[at + 1] & 0x3FU) << 12 | (p[at + 2] & 0x3FU) << 6 | (p[at + 3] & 0x3F);
        seen = 0x80;
        at += 4;
      }
      flags[n] = classes[code];
      bytes[n] = static_cast<unsigned char>(seen);
    }
    offsets[n] = static_cast<uint32_t>(at);
    for (int i = n; i < n + 4; ++i) bytes[i] = 0;

    Window w;
    w.size = n;
    w.final = at == text.size();
    w.bytes = bytes;
    uint64_t upper_class = 0, lower_class = 0;
    for (int half = 0; half < 2; ++half) {
      const auto load = [half](const unsigned char* q) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(q + 32 * half));
      };
      const auto mask = [half](__m256i is) {
        return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(is))} << 32 * half;
      };
      const __m256i f = load(flags);
      const __m256i b = load(bytes);
      const auto equals = [&](char c) { return mask(_mm256_cmpeq_epi8(b, _mm256_set1_epi8(c))); };
      w.letter |= mask(_mm256_slli_epi16(f, 7));
      w.number |= mask(_mm256_slli_epi16(f, 6));
      w.white |= mask(_mm256_slli_epi16(f, 5));
      w.newline |= mask(_mm256_slli_epi16(f, 4));
      upper_class |= mask(_mm256_slli_epi16(f, 3));
      lower_class |= mask(_mm256_slli_epi16(f, 2));
      w.punctuation |= mask(_mm256_slli_epi16(f, 1));
      w.cjk |= mask(f);
      w.space |= equals(' ');
      w.apostrophe |= equals('\'');
      w.slash |= equals('/');
    }
    const uint64_t known = w.known();
    w.letter &= known;
    w.number &= known;
    w.white &= known;
    w.newline &= known;
    w.upper = upper_class & ~lower_class & known;
    w.lower = lower_class & ~upper_class & known;
    w.mark = upper_class & lower_class & ~w.letter & known;
    w.punctuation &= known;
    w.cjk &= known;
    w.space &= known;
    w.apostrophe &= known;
    w.slash &= known;
    return w;
  }
};

}  // namespace tokamak
