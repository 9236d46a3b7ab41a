// Checksums by the names that Python's hashlib and xxhash give them, for files of other programs. base/hash.h has ours.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tokamak {

class Digest {
 public:
  virtual ~Digest() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  virtual std::string hex() = 0;  // of all bytes so far, lower case; ends the digest
};

// Known are md5, sha1, sha224 to sha512, sha3_224 to sha3_512, blake2b, blake2s, xxh32, xxh64, xxh3_64, xxh3_128 and
// xxh128. nullptr for others, and for those that the system's policy forbids.
std::unique_ptr<Digest> make_digest(std::string_view name);

}  // namespace tokamak
