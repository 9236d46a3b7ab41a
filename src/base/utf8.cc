#include "base/utf8.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <array>

namespace tokamak {

namespace {

// The bytes that a lead byte announces (0: not a lead byte), and the smallest code point that needs so many bytes.
struct Lead {
  int64_t length;
  char32_t smallest;
  unsigned payload;  // mask of the lead byte's own bits
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0x7F};
  if ((byte & 0xE0) == 0xC0) return {2, 0x80, 0x1F};
  if ((byte & 0xF0) == 0xE0) return {3, 0x800, 0x0F};
  if ((byte & 0xF8) == 0xF0) return {4, 0x10000, 0x07};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  constexpr Utf8Char kInvalid = {kInvalidUtf8, 1};
  const auto first = static_cast<unsigned char>(text[0]);
  const Lead lead = lead_of(first);
  if (lead.length == 0 || lead.length > std::ssize(text)) return kInvalid;
  char32_t code = first & lead.payload;
  for (int64_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return kInvalid;
    code = code << 6 | (byte & 0x3Fu);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < lead.smallest || surrogate || code > 0x10FFFF) return kInvalid;
  return {code, lead.length};
}

void append_utf8(char32_t code, std::string& text) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  if (code < 0x10000) return put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
}

namespace {

#if defined(__AVX2__)

// Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021). Three tables, indexed by half
// bytes of a byte and its predecessor, each name the faults that are possible; a fault that all three name is real.
class Utf8Blocks {
 public:
  void add(const char* p) {
    const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    if (_mm256_movemask_epi8(block) == 0) {
      error_ = _mm256_or_si256(error_, incomplete_);
      incomplete_ = _mm256_setzero_si256();
    } else {
      check(block);
    }
    before_ = block;
  }
  bool valid() const { return _mm256_testz_si256(error_, error_) != 0; }

 private:
  // The faults. kTwoContinuations is legal after a lead byte of 3 or 4 bytes, and must be there.
  static constexpr char kTooShort = 1, kTooLong = 2, kOverlong3 = 4, kTooLarge = 8, kSurrogate = 16, kOverlong2 = 32,
                        kTooLarge1000 = 64, kOverlong4 = 64, kTwoContinuations = char(128);
  static constexpr char kCarry = kTooShort | kTooLong | kTwoContinuations;

  static __m256i table(const std::array<char, 16>& values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values.data())));
  }
  static __m256i high_halves(__m256i bytes) {
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(0x0F));
  }
  template <int kBytes>
  __m256i earlier(__m256i block) const {  // the bytes kBytes before each of the block's
    return _mm256_alignr_epi8(block, _mm256_permute2x128_si256(before_, block, 0x21), 16 - kBytes);
  }

  void check(__m256i block) {
    static constexpr std::array<char, 16> kFirstHigh = {kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTooLong,
                                                        kTwoContinuations,
                                                        kTwoContinuations,
                                                        kTwoContinuations,
                                                        kTwoContinuations,
                                                        kTooShort | kOverlong2,
                                                        kTooShort,
                                                        kTooShort | kOverlong3 | kSurrogate,
                                                        kTooShort | kTooLarge | kTooLarge1000 | kOverlong4};
    static constexpr std::array<char, 16> kFirstLow = {kCarry | kOverlong3 | kOverlong2 | kOverlong4,
                                                       kCarry | kOverlong2,
                                                       kCarry,
                                                       kCarry,
                                                       kCarry | kTooLarge,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000 | kSurrogate,
                                                       kCarry | kTooLarge | kTooLarge1000,
                                                       kCarry | kTooLarge | kTooLarge1000};
    constexpr char kContinuation = kTooLong | kOverlong2 | kTwoContinuations;
    static constexpr std::array<char, 16> kSecondHigh = {kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kContinuation | kOverlong3 | kTooLarge1000 | kOverlong4,
                                                         kContinuation | kOverlong3 | kTooLarge,
                                                         kContinuation | kSurrogate | kTooLarge,
                                                         kContinuation | kSurrogate | kTooLarge,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort,
                                                         kTooShort};

    const __m256i first = earlier<1>(block);
    const __m256i faults = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(table(kFirstHigh), high_halves(first)),
                         _mm256_shuffle_epi8(table(kFirstLow), _mm256_and_si256(first, _mm256_set1_epi8(0x0F)))),
        _mm256_shuffle_epi8(table(kSecondHigh), high_halves(block)));
    const __m256i third = _mm256_subs_epu8(earlier<2>(block), _mm256_set1_epi8(char(0xE0 - 0x80)));
    const __m256i fourth = _mm256_subs_epu8(earlier<3>(block), _mm256_set1_epi8(char(0xF0 - 0x80)));
    const __m256i must_continue = _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(char(0x80)));
    error_ = _mm256_or_si256(error_, _mm256_xor_si256(must_continue, faults));
    // Lead bytes so near the end that the character is not whole.
    static constexpr std::array<char, 32> kMost = [] {
      std::array<char, 32> most{};
      most.fill(char(0xFF));
      most[29] = char(0xF0 - 1), most[30] = char(0xE0 - 1), most[31] = char(0xC0 - 1);
      return most;
    }();
    incomplete_ = _mm256_subs_epu8(block, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMost.data())));
  }

  __m256i before_ = _mm256_setzero_si256();
  __m256i error_ = _mm256_setzero_si256();
  __m256i incomplete_ = _mm256_setzero_si256();
};

bool is_valid_by_blocks(std::string_view text) {
  constexpr size_t kBlock = 32;
  Utf8Blocks blocks;
  size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) blocks.add(text.data() + at);
  std::array<char, kBlock> rest{};     // ends in at least one NUL, so that a cut character is a fault
  text.copy(rest.data(), kBlock, at);  // not memcpy: the text may be empty and nowhere
  blocks.add(rest.data());
  return blocks.valid();
}

#else

bool is_valid_by_char(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (c.code == kInvalidUtf8) return false;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return true;
}

#endif

}  // namespace

bool is_valid_utf8(std::string_view text) {
#if defined(__AVX2__)
  return is_valid_by_blocks(text);
#else
  return is_valid_by_char(text);
#endif
}

}  // namespace tokamak
