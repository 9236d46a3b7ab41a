// Checksums: XXH3, 64 and 128 bit, one-shot and streaming. They detect damaged disks and truncated copies, not an
// adversary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;  // of xxhash.h

namespace tokamak {

uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed = 0);
std::array<uint64_t, 2> xxh3_128(std::span<const std::byte> bytes);  // the high half first
uint64_t xxh64(std::span<const std::byte> bytes);  // the older function, for values that others compute too
// A number that no file can foresee: the seed of a hash table whose keys are foreign.
uint64_t unpredictable_seed();

// XXH3-128 over the bytes fed so far, as 32 hexadecimal digits (big-endian, as xxhsum -H2 prints it).
class Hasher {
 public:
  Hasher();
  void update(std::span<const std::byte> bytes);
  std::string hex128() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string hex64(uint64_t value);  // 16 hexadecimal digits
std::string xxh3_128_hex(std::span<const std::byte> bytes);

}  // namespace tokamak
