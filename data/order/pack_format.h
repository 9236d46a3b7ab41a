// Constants of the table of rows; its grammar is in pack_table.h.
#pragma once

#include <cstdint>
#include <span>

#include "base/hash.h"
#include "data/block_sums.h"

namespace tokamak {

inline constexpr char kPackMagic[] = "TOKPACK1";  // its 8 characters are written
inline constexpr int64_t kPieceBytes = 12;
inline constexpr int64_t kPackBlockBytes = int64_t{64} << 10;
inline constexpr int64_t kPackFooterBytes = 8 + 4 * 8 + 32 + 8;

inline uint64_t hash_of_sums(const SumTable& sums, std::span<const std::byte> footer) {
  std::vector<std::byte> bytes(std::as_bytes(std::span(sums.sums)).begin(), std::as_bytes(std::span(sums.sums)).end());
  bytes.insert(bytes.end(), footer.begin(), footer.end());
  return xxh3_64(bytes);
}

}  // namespace tokamak
