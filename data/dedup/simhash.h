// SimHash fingerprints (Charikar 2002; Manku et al., WWW 2007). Each bit is the majority of that bit over the hashes of
// a text's word 3-grams. So similar texts differ in few bits: each with the probability angle / pi.
//
// A word is a run of letters and digits, in lower case as far as ASCII goes. A character from U+3000 to U+9FFF is a
// word. One pass over the bytes does it, as it must keep up with a disk.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tokamak {

using Fingerprint = std::array<uint64_t, 2>;  // the second word is 0 if there are 64 bits

enum class FingerprintBits { k64, k128 };

// Zero for a text without words. A text of one or two words has one n-gram.
Fingerprint simhash(std::string_view text, FingerprintBits bits);

int hamming_distance(const Fingerprint& a, const Fingerprint& b);

}  // namespace tokamak
