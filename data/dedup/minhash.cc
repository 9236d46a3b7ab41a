#include "data/dedup/minhash.h"

#include <algorithm>
#include <random>

#include "base/hash.h"
#include "data/dedup/simplified_text.h"

namespace tokamak {

namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

// numpy.random.RandomState(seed).randint(low, kPrime, dtype=uint64): draws of 61 bits until one is in the range.
std::vector<uint64_t> draw(std::mt19937& random, uint64_t low, size_t count) {
  std::vector<uint64_t> out(count);
  for (uint64_t& value : out) {
    do {
      const uint64_t high = random();
      value = (high << 32 | random()) & kPrime;
    } while (value > kPrime - 1 - low);
    value += low;
  }
  return out;
}

}  // namespace

MinHasher::MinHasher(const MinHashOptions& options, WordRules rules) : options_(options), splitter_(rules) {
  std::mt19937 random(static_cast<uint32_t>(options.seed));
  const auto count = static_cast<size_t>(options.bands * options.rows);
  factors_ = draw(random, 1, count);
  offsets_ = draw(random, 0, count);
}

std::span<const uint64_t> MinHasher::signature(std::string_view text) {
  hash_ngrams(text);
  if (ngrams_.empty()) return {};
  values_.assign(factors_.size(), UINT64_MAX);
  uint64_t* const values = values_.data();
  const uint64_t *const factors = factors_.data(), *const offsets = offsets_.data();
  const size_t count = values_.size();
  for (const uint64_t ngram : ngrams_) {
    for (size_t i = 0; i < count; ++i) {  // the product wraps at 2^64, as numpy's does
      const uint64_t mixed = ngram * factors[i] + offsets[i];
      const uint64_t folded = (mixed & kPrime) + (mixed >> 61);
      values[i] = std::min(values[i], folded >= kPrime ? folded - kPrime : folded);
    }
  }
  return values_;
}

void MinHasher::hash_ngrams(std::string_view text) {
  simplify_text(text, simplified_);
  splitter_.split(simplified_, words_);
  joined_.clear();
  begins_.clear();
  for (const std::string_view word : words_) {
    begins_.push_back(joined_.size());
    joined_ += word;
    joined_ += ' ';
  }
  begins_.push_back(joined_.size());
  ngrams_.clear();
  const auto length = static_cast<size_t>(options_.words);
  for (size_t i = 0; i + length < begins_.size(); ++i) {
    const std::string_view ngram(joined_.data() + begins_[i], begins_[i + length] - 1 - begins_[i]);
    ngrams_.push_back(xxh64(std::as_bytes(std::span(ngram))));
  }
}

}  // namespace tokamak
