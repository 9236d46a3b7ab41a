// Attention's FLOPs of documents. Ops counts those of the longest documents that a call allows, since the boundaries lie
// on the device.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

// What a call of this title computes, as a share of the FLOPs that Ops counts: of attention in sequences of `length`
// tokens, whose tokens attend to `attended` on average; 1 for others.
inline double share_of_counted(std::string_view title, double attended, int64_t length) {
  return title.starts_with("attention") ? attended / (0.5 * static_cast<double>(length + 1)) : 1;
}

}  // namespace tokamak
