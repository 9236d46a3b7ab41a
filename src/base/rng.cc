#include "base/rng.h"

#include "base/rng_formulas.h"

namespace tokamak {

double log_ieee(double x) { return rng_formulas::log_ieee(x); }

double normal_quantile(double p) { return rng_formulas::normal_quantile(p); }

uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

RandomStream::RandomStream(uint64_t seed, std::string_view name)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream_(name_hash(name)) {}

uint32_t RandomStream::word(uint64_t index) const {
  return rng_formulas::block_at(index / 4, stream_, key_)[index % 4];
}

double RandomStream::uniform(uint64_t index) const { return rng_formulas::to_uniform(word(index)); }

float RandomStream::normal(uint64_t index) const { return static_cast<float>(normal_quantile(uniform(index))); }

void RandomStream::fill_normal(float* out, int64_t count, uint64_t first, double mean, double std) const {
  uint64_t index = first;
  for (int64_t i = 0; i < count;) {
    const auto words = rng_formulas::block_at(index / 4, stream_, key_);
    for (uint64_t lane = index % 4; lane < 4 && i < count; ++lane, ++index, ++i) {
      out[i] = rng_formulas::normal_of(words[lane], mean, std);
    }
  }
}

}  // namespace tokamak
