// The distinct pretokens of a text and their counts, as the learner of merges takes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tokamak {

struct WordList {
  std::vector<uint32_t> symbols;  // of all words: bytes, and later ids
  std::vector<uint64_t> begins;   // of each word in `symbols`
  std::vector<uint32_t> lengths;  // of each word
  std::vector<int64_t> counts;    // of each word

  int64_t size() const { return std::ssize(counts); }

  // `word` differs from all others. A word of one byte has no pair: it is left out.
  void add(std::string_view word, int64_t count) {
    if (word.size() < 2) return;
    begins.push_back(symbols.size());
    lengths.push_back(static_cast<uint32_t>(word.size()));
    counts.push_back(count);
    for (const char c : word) symbols.push_back(static_cast<unsigned char>(c));
  }

  void reserve(int64_t words, int64_t bytes) {
    symbols.reserve(static_cast<size_t>(bytes));
    begins.reserve(static_cast<size_t>(words));
    lengths.reserve(static_cast<size_t>(words));
    counts.reserve(static_cast<size_t>(words));
  }
};

}  // namespace tokamak
