// Checksums by block: damage is detected at the first read of a block, and the error names the block.
//
//   sum   := "LLMSUM1\0" table(.bin) table(.idx) self
//   table := u64 block_bytes, u64 blocks, u64 xxh3_64[blocks]    the last block may be short
//   self  := u64 xxh3_64 of everything before it                 little-endian throughout
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"

namespace tokamak {

inline constexpr int64_t kBinBlockBytes = int64_t{4} << 20;
inline constexpr int64_t kIdxBlockBytes = int64_t{64} << 10;  // small: readers access an index at random

inline constexpr int64_t kSumsHeaderWords = 6;  // of the file, besides the sums

struct SumTable {
  int64_t block_bytes = 0;
  std::vector<uint64_t> sums;

  int64_t blocks() const { return std::ssize(sums); }
};

struct ShardSums {
  SumTable bin;
  SumTable idx;
};

// Computes the checksum of each block and of the whole from a file's bytes, in order.
class BlockHasher {
 public:
  explicit BlockHasher(int64_t block_bytes);
  void update(std::span<const std::byte> bytes);
  SumTable finish();  // closes the last block
  std::string hex128() const { return whole_.hex128(); }

 private:
  SumTable table_;
  std::vector<std::byte> block_;  // bytes of the block that is not yet full
  Hasher whole_;
};

void write_sums(const std::string& path, const ShardSums& sums);
// Error(kData) if the file is damaged, or if its tables do not cover files of these sizes.
ShardSums read_sums(const InputFile& file, int64_t bin_bytes, int64_t idx_bytes);

}  // namespace tokamak
