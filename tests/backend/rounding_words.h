// The random word of StochasticRounding by the formula of ops.h.
#pragma once

#include <array>

#include "backend/ops.h"
#include "base/rng.h"
#include "base/rng_formulas.h"

namespace tokamak::testing {

// The word of element i of a call; `name` is the operation's NAME.
inline uint32_t word_of(const StochasticRounding& rounding, int64_t i, const char* name) {
  const auto index = static_cast<uint64_t>(rounding.first + i), step = static_cast<uint64_t>(rounding.step);
  const uint64_t key = mix64(rounding.seed ^ name_hash(name));
  const auto halves = [](uint64_t x) { return std::array{static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)}; };
  const auto block = halves(index / 4), of_step = halves(step);
  return rng_formulas::philox4x32({block[0], block[1], of_step[0], of_step[1]}, halves(key))[index % 4];
}

}  // namespace tokamak::testing
