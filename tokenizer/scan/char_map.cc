#include "tokenizer/scan/char_map.h"

#include <algorithm>
#include <map>

namespace tokamak {

CharMap::CharMap(std::span<const uint32_t> runs) {
  std::map<Block, uint16_t> known;
  size_t run = 0;
  const auto add = [&](const Block& block) {
    const auto [at, added] = known.emplace(block, static_cast<uint16_t>(blocks_.size()));
    if (added) blocks_.push_back(block);
    return at->second;
  };
  std::array<int, 256> uniform;  // the block that holds one value only
  uniform.fill(-1);
  for (uint32_t first = 0; first < 0x110000; first += 128) {
    while (run + 1 < runs.size() && runs[run + 1] >> 8 <= first) ++run;
    Block block;
    uint32_t filled = 0;
    size_t at = run;
    while (filled < 128) {
      const uint32_t end = at + 1 < runs.size() ? std::min(runs[at + 1] >> 8, first + 128) - first : 128;
      std::fill(block.begin() + filled, block.begin() + end, static_cast<uint8_t>(runs[at]));
      filled = end;
      ++at;
    }
    const auto value = static_cast<uint8_t>(runs[run]);
    if (at == run + 1) {
      if (uniform[value] < 0) uniform[value] = add(block);
      blocks_at_[first >> 7] = static_cast<uint16_t>(uniform[value]);
    } else {
      blocks_at_[first >> 7] = add(block);
    }
  }
}

}  // namespace tokamak
