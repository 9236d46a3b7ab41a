#include "base/hash.h"

#include <xxhash.h>

#include <array>
#include <cstdio>
#include <random>

namespace tokamak {

namespace {

std::string hex128_of(XXH128_hash_t hash) { return hex64(hash.high64) + hex64(hash.low64); }

}  // namespace

void Hasher::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Hasher::Hasher() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

void Hasher::update(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }

std::string Hasher::hex128() const { return hex128_of(XXH3_128bits_digest(state_.get())); }

uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::array<uint64_t, 2> xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

uint64_t xxh64(std::span<const std::byte> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

uint64_t unpredictable_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  return hex128_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hex64(uint64_t value) {
  std::array<char, 17> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%016llx", static_cast<unsigned long long>(value));
  return buffer.data();
}

}  // namespace tokamak
