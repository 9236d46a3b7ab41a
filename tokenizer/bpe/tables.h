// A compiled model, as encoders read it.
#pragma once

#include <array>
#include <cstdint>

#include "tokenizer/bpe/cut_rule.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/piece_table.h"

namespace tokamak {

// The pieces that a pretoken becomes without merging: with whole_pieces any, otherwise those that merging would reach.
struct WholePieces {
  PieceTable narrow;
  PieceTable wide;  // those only that merging does not reach
};

struct ByteBpeTables {
  std::array<uint32_t, 256> byte_ids;
  PairTable pairs;
  CutRule cuts;
  bool whole_pieces;
  WholePieces wholes;
};

}  // namespace tokamak
