#include "data/dedup/simhash.h"

#include <bit>

namespace tokamak {

namespace {

constexpr uint64_t kMixA = 0x9E3779B97F4A7C15ULL, kMixB = 0xD6E8FEB86659FD93ULL;

__extension__ using Product = unsigned __int128;

uint64_t fold(uint64_t a, uint64_t b) {
  const Product product = Product{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// 64 counters side by side: bit i of plane k is bit k of counter i. Adding a hash is an addition with carries.
class BitCounters {
 public:
  void add(uint64_t bits) {
    for (size_t plane = 0; bits != 0; ++plane) {
      const uint64_t carry = planes_[plane] & bits;
      planes_[plane] ^= bits;
      bits = carry;
    }
  }
  // The bits whose counter is more than `limit`.
  uint64_t above(uint64_t limit) const {
    uint64_t greater = 0, equal = ~uint64_t{0};
    for (size_t plane = planes_.size(); plane-- > 0;) {
      if ((limit >> plane & 1) != 0) {
        equal &= planes_[plane];
      } else {
        greater |= equal & planes_[plane];
        equal &= ~planes_[plane];
      }
    }
    return greater;
  }

 private:
  std::array<uint64_t, 40> planes_{};
};

enum class ByteKind : uint8_t { kGap, kWord, kOwnWord };

// Bytes from U+3000 on to U+9FFF begin with E3 to E9; the bytes after the first belong to the same word.
constexpr std::array<ByteKind, 256> byte_kinds() {
  std::array<ByteKind, 256> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool letter = (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') || (i >= '0' && i <= '9') || i >= 0x80;
    kinds[i] = i >= 0xE3 && i <= 0xE9 ? ByteKind::kOwnWord : letter ? ByteKind::kWord : ByteKind::kGap;
  }
  return kinds;
}
constexpr std::array<ByteKind, 256> kKinds = byte_kinds();

template <FingerprintBits bits>
Fingerprint fingerprint(std::string_view text) {
  BitCounters low, high;
  uint64_t count = 0, word = 0, last = 0, before_last = 0, words = 0;
  const auto add = [&](uint64_t hash) {
    const uint64_t mixed = fold(hash ^ kMixA, kMixB);
    low.add(mixed);
    if constexpr (bits == FingerprintBits::k128) high.add(fold(mixed ^ kMixB, kMixA));
    ++count;
  };
  const auto end_word = [&] {
    if (word == 0) return;
    if (++words >= 3) add(before_last * 3 + last * 5 + word * 7);
    before_last = last, last = word, word = 0;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const ByteKind kind = kKinds[byte];
    if (kind == ByteKind::kGap) {
      end_word();
      continue;
    }
    if (kind == ByteKind::kOwnWord) {
      end_word();
      uint64_t code = byte;
      for (int more = 0; more < 2 && at + 1 < text.size(); ++more)
        code = code << 8 | static_cast<unsigned char>(text[++at]);
      word = fold(code ^ kMixA, kMixB) | 1;
      end_word();
      continue;
    }
    const uint64_t lower = byte >= 'A' && byte <= 'Z' ? byte + 32u : byte;
    word = (word + lower + 1) * kMixA;
    word ^= word >> 29;
  }
  end_word();
  if (count == 0 && words > 0) add(before_last * 3 + last * 5);
  return {low.above(count / 2), bits == FingerprintBits::k128 ? high.above(count / 2) : 0};
}

}  // namespace

Fingerprint simhash(std::string_view text, FingerprintBits bits) {
  return bits == FingerprintBits::k64 ? fingerprint<FingerprintBits::k64>(text)
                                      : fingerprint<FingerprintBits::k128>(text);
}

int hamming_distance(const Fingerprint& a, const Fingerprint& b) {
  return std::popcount(a[0] ^ b[0]) + std::popcount(a[1] ^ b[1]);
}

}  // namespace tokamak
