#include "data/order/window_order.h"

#include "base/error.h"
#include "base/rng.h"
#include "data/order/block_shuffle.h"
#include "data/permutation.h"

namespace tokamak {

EpochShuffle EpochShuffle::keyed(int64_t seed, int64_t source) {
  EpochShuffle shuffle;
  shuffle.mode_ = Mode::kKeyed;
  shuffle.key_ = mix64(mix64(static_cast<uint64_t>(seed) + 0x9e3779b97f4a7c15ull) ^ static_cast<uint64_t>(source));
  return shuffle;
}

EpochShuffle EpochShuffle::blocks(int64_t seed, int64_t source, int64_t block) {
  EpochShuffle shuffle = keyed(seed, source);
  shuffle.mode_ = Mode::kBlocks;
  shuffle.block_ = block;
  return shuffle;
}

int64_t EpochShuffle::operator()(int64_t i, int64_t epoch, int64_t n) const {
  const uint64_t key = mix64(key_ + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(epoch + 1));
  switch (mode_) {
    case Mode::kNone:
      return i;
    case Mode::kKeyed:
      return Permutation(n, key)(i);
    case Mode::kBlocks:
      return block_shuffled(i, n, block_, key);
  }
  TOKAMAK_UNREACHABLE("shuffle ", static_cast<int>(mode_));
}

WindowOrder::WindowOrder(int64_t tokens, int64_t length, EpochShuffle shuffle)
    : length_(length), windows_((tokens - 1) / length), shuffle_(shuffle) {
  TOKAMAK_CHECK(windows_ > 0, tokens, " tokens, windows of ", length);
}

void WindowOrder::ranges(int64_t j, std::vector<TokenRange>& out) const {
  const int64_t window = shuffle_(j % windows_, j / windows_, windows_);
  out.assign(1, {window * length_, length_ + 1});
}

}  // namespace tokamak
