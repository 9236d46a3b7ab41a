#include "base/hash.h"

#include <xxhash.h>

#include <array>
#include <cstdio>

namespace tokamak {

namespace {

std::string hex128_of(XXH128_hash_t hash) { return hex64(hash.high64) + hex64(hash.low64); }

}  // namespace

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()); }

std::string Hasher::hex128() const { return hex128_of(XXH3_128bits_digest(state_->xxh)); }

uint64_t xxh3_64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string xxh3_128_hex(std::span<const std::byte> bytes) {
  return hex128_of(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hex64(uint64_t value) {
  std::array<char, 17> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%016llx", static_cast<unsigned long long>(value));
  return buffer.data();
}

}  // namespace tokamak
