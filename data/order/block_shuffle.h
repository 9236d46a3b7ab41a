// A shuffle that keeps neighbours near each other, for file systems that are slow at small random reads. Blocks of
// samples are permuted globally, and then the samples inside each group of blocks. It is a keyed bijection of [0, n)
// without arrays. A run reads from one group at a time, so its reads fall into kBlocksPerGroup blocks.
//
// The n / block whole blocks begin at an offset that depends on the key, and wrap around. So the rest, less than a
// block, is other samples in each epoch. It is in the last group, which has up to 2 kBlocksPerGroup - 1 blocks.
#pragma once

#include <cstdint>

namespace tokamak {

inline constexpr int64_t kBlocksPerGroup = 16;

// The i-th element of the shuffled [0, n), for i in [0, n), 0 < n <= 2^62 and block > 0.
int64_t block_shuffled(int64_t i, int64_t n, int64_t block, uint64_t key);

}  // namespace tokamak
