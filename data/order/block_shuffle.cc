#include "data/order/block_shuffle.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "data/permutation.h"

namespace tokamak {

int64_t block_shuffled(int64_t i, int64_t n, int64_t block, uint64_t key) {
  TOKAMAK_CHECK(0 <= i && i < n && block > 0, "element ", i, " of ", n, ", blocks of ", block);
  const int64_t blocks = n / block;
  const int64_t groups = std::max<int64_t>(blocks / kBlocksPerGroup, 1);
  const int64_t group_size = kBlocksPerGroup * block;  // but the last group takes what is left
  const int64_t group = std::min(blocks == 0 ? 0 : i / group_size, groups - 1);
  const int64_t begin = group == 0 ? 0 : group * group_size;
  const int64_t size = group == groups - 1 ? n - begin : group_size;

  const uint64_t group_key = mix64(mix64(key + 1) ^ static_cast<uint64_t>(group));
  const int64_t inside = Permutation(size, group_key)(i - begin);
  const int64_t slot = begin / block + inside / block;  // of a block; blocks itself: the rest
  const int64_t image = slot < blocks ? Permutation(blocks, mix64(key + 2))(slot) : blocks;
  const auto shift = static_cast<int64_t>(mix64(key + 3) % static_cast<uint64_t>(n));
  const int64_t unshifted = image * block + inside % block;
  return unshifted < n - shift ? unshifted + shift : unshifted - (n - shift);
}

}  // namespace tokamak
