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

template <Family kFamily>
class WindowScanner : public Scanner {
 public:
  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override {
    Ends out{ends, 0};
    DecodedWindow decoded;
    while (at < text.size() && out.count < ends.size()) {
      const auto* p = reinterpret_cast<const unsigned char*>(text.data()) + at;
      alignas(32) unsigned char last[kWindow + 4];
      int ascii = kWindow;
      const size_t left = text.size() - at;
      if (left < kWindow) {
        std::memcpy(last, p, left);
        std::memset(last + left, 0, sizeof(last) - left);
        p = last;
        ascii = static_cast<int>(left);
      }
      const uint64_t high = high_bytes(p);
      if (high != 0) ascii = std::countr_zero(high);
      // Half a window of ASCII is cheaper than a whole one that is decoded.
      if (high == 0 || ascii >= kWindow / 2) {
        const size_t from = at;
        if (emit(
                ascii_window(p, ascii, high == 0 && left < kWindow), out,
                [from](int i) { return from + static_cast<size_t>(i); }, at))
          continue;
      }
      if (emit(
              decoded.decode(text, at, classes_), out, [&](int i) { return size_t{decoded.offsets[i]}; }, at))
        continue;
      at = ScalarScan<kFamily>(text, classes_).piece_end(at);
      out.add(at);
    }
    return out.count;
  }

 private:
  struct Ends {
    std::span<uint32_t> ends;
    size_t count;
    void add(size_t end) { ends[count++] = static_cast<uint32_t>(end); }
  };

  static uint64_t high_bytes(const unsigned char* p) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_loadu_si256(v + 1)))} << 32 |
           static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_loadu_si256(v)));
  }

  // Adds the ends that the window is sure of, as many as there is space for, and moves `at` there. False if it is sure
  // of none.
  template <class OffsetOf>
  static bool emit(const Window& w, Ends& out, OffsetOf offset_of, size_t& at) {
    const Starts starts = starts_of<kFamily>(w);
    uint64_t bits = starts.bits & bits_through(starts.trusted) & ~uint64_t{1};
    const bool to_the_end = w.final && starts.trusted == w.size - 1;
    if (bits == 0 && !to_the_end) return false;
    size_t space = out.ends.size() - out.count;
    uint32_t* end = out.ends.data() + out.count;
    const uint32_t* const first = end;
    if (space > kWindow) {
      for (; bits != 0; bits &= bits - 1) *end++ = static_cast<uint32_t>(offset_of(std::countr_zero(bits)));
      if (to_the_end) *end++ = static_cast<uint32_t>(offset_of(w.size));
    } else {
      for (; bits != 0 && space != 0; bits &= bits - 1, --space)
        *end++ = static_cast<uint32_t>(offset_of(std::countr_zero(bits)));
      if (to_the_end && space != 0) *end++ = static_cast<uint32_t>(offset_of(w.size));
    }
    out.count += static_cast<size_t>(end - first);
    at = end[-1];
    return true;
  }

  const CharMap& classes_ = classes_of<kFamily>();
};

template <Family kFamily>
std::unique_ptr<Scanner> make_family_scanner(Simd simd) {
  if constexpr (kFamily.words != Words::kDeepSeek)
    if (simd == Simd::kBest) return std::make_unique<WindowScanner<kFamily>>();
  return std::make_unique<ScalarScanner<kFamily>>();
}

}  // namespace tokamak
