// MinHash signatures (Broder 1997) of word n-grams. Two texts agree in each value with the probability of their Jaccard
// similarity. The values are datatrove's bit for bit (0.10, pipeline/dedup/minhash.py, with its xxhash of 64 bits).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rules/words.h"

namespace tokamak {

// Texts of similarity s share a band with probability 1 - (1 - s^rows)^bands. The defaults are FineWeb's: 0.92 at 0.8.
struct MinHashOptions {
  int64_t bands = 14;
  int64_t rows = 8;
  int64_t words = 5;
  int64_t seed = 1;

  template <class Visitor>
  void fields(Visitor& v) {
    v("bands", bands, "bands of a signature; more finds less similar copies, and takes more time and disk");
    v("rows", rows, "values of a band, which must all be equal; more finds only closer copies");
    v("words", words, "words of an n-gram; more makes texts less similar to each other");
    v("seed", seed, "chooses the hash functions; signatures of two seeds do not compare");
  }
};

class MinHasher {
 public:
  MinHasher(const MinHashOptions& options, WordRules rules);

  // (bands * rows) values below 2^61 - 1, band by band, until the next call. Empty: the text has fewer words than an
  // n-gram, and no signature.
  std::span<const uint64_t> signature(std::string_view text);

 private:
  void hash_ngrams(std::string_view text);

  MinHashOptions options_;
  WordSplitter splitter_;
  std::vector<uint64_t> factors_, offsets_;  // of the hash functions
  std::vector<uint64_t> values_;
  std::string simplified_, joined_;
  std::vector<std::string_view> words_;
  std::vector<size_t> begins_;    // of the words in joined_
  std::vector<uint64_t> ngrams_;  // their hashes
};

}  // namespace tokamak
