// Checked sums and products of counts from files. Real counts never overflow; a file that overflows is refused.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace tokamak {

// `name` completes "NAME is too large: A x B", and includes the file: "data/manifest.json: the bytes of shard 'a'".
inline int64_t checked_multiply(int64_t a, int64_t b, Kind kind, const std::string& name) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail(kind, str(name, " is too large: ", a, " x ", b));
  return product;
}

inline int64_t checked_add(int64_t a, int64_t b, Kind kind, const std::string& name) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail(kind, str(name, " is too large: ", a, " + ", b));
  return sum;
}

}  // namespace tokamak
