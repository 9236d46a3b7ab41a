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

// 64 counters side by side: bit i of plane k is bit k of counter i. Hashes meet in pairs: a full adder adds two to a
// plane, and its carry waits for another at the next. When that is, only the count decides, so it is easy to predict.
class BitCounters {
 public:
  void add(uint64_t bits) {
    size_t plane = 0;
    for (uint64_t waiting = count_++; (waiting & 1) != 0; waiting >>= 1, ++plane) {
      const uint64_t other = waiting_[plane], sum = planes_[plane];
      planes_[plane] = sum ^ other ^ bits;
      bits = (sum & other) | (bits & (sum ^ other));
    }
    waiting_[plane] = bits;
  }
  uint64_t count() const { return count_; }
  // The bits whose counter is more than half of the count. The last call.
  uint64_t majority() {
    for (size_t first = 0; first < planes_.size(); ++first) {
      if ((count_ >> first & 1) == 0) continue;
      uint64_t bits = waiting_[first];
      for (size_t plane = first; bits != 0; ++plane) {
        const uint64_t carry = planes_[plane] & bits;
        planes_[plane] ^= bits;
        bits = carry;
      }
    }
    return above(count_ / 2);
  }

 private:
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

  std::array<uint64_t, 40> planes_{}, waiting_{};
  uint64_t count_ = 0;
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
  uint64_t word = 0, last = 0, before_last = 0, words = 0;
  const auto add = [&](uint64_t hash) {
    const uint64_t mixed = fold(hash ^ kMixA, kMixB);
    low.add(mixed);
    if constexpr (bits == FingerprintBits::k128) high.add(fold(mixed ^ kMixB, kMixA));
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
  if (low.count() == 0 && words > 0) add(before_last * 3 + last * 5);
  return {low.majority(), bits == FingerprintBits::k128 ? high.majority() : 0};
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
