// The scanners written by hand, one for each family of patterns.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "tokenizer/scan/family.h"
#include "tokenizer/scan/scalar_scan.h"
#include "tokenizer/scan/scanner.h"
#include "tokenizer/scan/window_scan.h"

namespace tokamak {

template <Family kFamily>
const CharMap& classes_of() {
  return kFamily.words == Words::kGpt2 && kFamily.numbers_are_borders ? char_classes_of_digits() : char_classes();
}

template <Family kFamily>
class ScalarScanner : public Scanner {
 public:
  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    ScalarScan<kFamily> scan(text, classes_);
    size_t count = 0;
    for (; at < text.size() && count < ends.size(); ends[count++] = static_cast<uint32_t>(at)) at = scan.piece_end(at);
    return count;
  }

 private:
  const CharMap& classes_ = classes_of<kFamily>();
};

// Cuts the text window by window. Inlined into functions compiled for each kind of vectors.
template <Family kFamily, class Vectors>
class Windows {
 public:
  Windows(std::string_view text, std::span<uint32_t> ends, const CharMap& classes)
      : text_(text), ends_(ends), classes_(classes) {}

  __attribute__((always_inline)) size_t scan(size_t at) {
    DecodedWindow decoded;
    while (at < text_.size() && count_ < ends_.size()) {
      const auto* p = reinterpret_cast<const unsigned char*>(text_.data()) + at;
      alignas(32) unsigned char last[kWindow + 4];
      int ascii = kWindow;
      const size_t left = text_.size() - at;
      if (left < kWindow) {
        std::memcpy(last, p, left);
        std::memset(last + left, 0, sizeof(last) - left);
        p = last;
        ascii = static_cast<int>(left);
      }
      const uint64_t high = Vectors::high_bytes(p);
      if (high != 0) ascii = std::countr_zero(high);
      // Half a window of ASCII is cheaper than a whole one that is decoded.
      if (high == 0 || ascii >= kWindow / 2) {
        const Window w = ascii_window<Vectors>(p, ascii, high == 0 && left < kWindow);
        uint64_t bits = sure_ends(w);
        if (bits != 0 || all_sure_) {
          const auto base = static_cast<uint32_t>(at);
          if (ends_.size() - count_ > kWindow + 16) {
            uint32_t* end = Vectors::write_bits(bits, base, ends_.data() + count_);
            if (all_sure_) *end++ = static_cast<uint32_t>(text_.size());
            count_ = static_cast<size_t>(end - ends_.data());
          } else {
            add(bits, w, [base](int i) { return base + static_cast<uint32_t>(i); });
          }
          at = ends_[count_ - 1];
          continue;
        }
      }
      const Window w = decoded.decode(text_, at, classes_);
      const uint64_t bits = sure_ends(w);
      if (bits != 0 || all_sure_) {
        add(bits, w, [&](int i) { return decoded.offsets[i]; });
        at = ends_[count_ - 1];
        continue;
      }
      at = ScalarScan<kFamily>(text_, classes_).piece_end(at);
      ends_[count_++] = static_cast<uint32_t>(at);
    }
    return count_;
  }

 private:
  // The ends of pieces inside the window that nothing after the window can change.
  __attribute__((always_inline)) uint64_t sure_ends(const Window& w) {
    const Starts starts = starts_of<kFamily>(w);
    all_sure_ = w.final && starts.trusted == w.size - 1;
    return starts.bits & bits_through(starts.trusted) & ~uint64_t{1};
  }

  template <class OffsetOf>
  __attribute__((always_inline)) void add(uint64_t bits, const Window& w, OffsetOf offset_of) {
    for (; bits != 0 && count_ < ends_.size(); bits &= bits - 1) ends_[count_++] = offset_of(std::countr_zero(bits));
    if (all_sure_ && count_ < ends_.size()) ends_[count_++] = offset_of(w.size);
  }

  std::string_view text_;
  std::span<uint32_t> ends_;
  const CharMap& classes_;
  size_t count_ = 0;
  bool all_sure_ = false;  // the text ends with the window, and its last piece too
};

template <Family kFamily>
class Avx2Scanner : public Scanner {
 public:
  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    return Windows<kFamily, Avx2>(text, ends, classes_).scan(at);
  }

 private:
  const CharMap& classes_ = classes_of<kFamily>();
};

template <Family kFamily>
class Avx512Scanner : public Scanner {
 public:
  TOKAMAK_AVX512 size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    return Windows<kFamily, Avx512>(text, ends, classes_).scan(at);
  }

 private:
  const CharMap& classes_ = classes_of<kFamily>();
};

template <Family kFamily>
std::unique_ptr<Scanner> make_family_scanner(Simd simd) {
  if constexpr (kFamily.words != Words::kDeepSeek) {
    if (simd == Simd::kBest && Avx512::here()) return std::make_unique<Avx512Scanner<kFamily>>();
    if (simd != Simd::kNone) return std::make_unique<Avx2Scanner<kFamily>>();
  }
  return std::make_unique<ScalarScanner<kFamily>>();
}

}  // namespace tokamak
