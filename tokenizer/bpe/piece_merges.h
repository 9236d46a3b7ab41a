// How the bytes of each piece of a vocabulary merge, found once at load.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/pair_table.h"

namespace tokamak {

struct PieceMerge {
  uint32_t left = 0, right = 0;  // of 2 to ByteMerger::kShort bytes: the two symbols of the last merge; else 0
  bool reachable = false;        // the bytes become the piece
};

// By id. `byte_ids` are the ids of single bytes.
std::vector<PieceMerge> merge_pieces(const ByteBpeModel& model, const PairTable& pairs,
                                     const std::array<uint32_t, 256>& byte_ids);

}  // namespace tokamak
