// A compiled model, as encoders read it.
#pragma once

#include <array>
#include <cstdint>

#include "tokenizer/bpe/cut_rule.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/piece_table.h"

namespace tokamak {

struct ByteBpeTables {
  std::array<uint32_t, 256> byte_ids;
  PairTable pairs;
  CutRule cuts;
  bool whole_pieces;
  PieceTable pieces;  // with whole_pieces, all; otherwise only the reachable ones
};

}  // namespace tokamak
