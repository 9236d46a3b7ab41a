// Text to pretokens to ids.
#include <array>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/bpe/byte_merge.h"
#include "tokenizer/bpe/pretoken_key.h"
#include "tokenizer/bpe/tables.h"

namespace tokamak {

struct ByteBpeEncoder::State {
  const ByteBpeTables& tables;
  ByteMerger merger;
};

ByteBpeEncoder::ByteBpeEncoder(const ByteBpe& bpe)
    : state_(new State{bpe.tables(), ByteMerger(bpe.tables().pairs, bpe.tables().byte_ids)}) {}

ByteBpeEncoder::~ByteBpeEncoder() = default;

void ByteBpeEncoder::encode(std::string_view text, const Scanner& scanner, std::vector<int32_t>& ids) {
  std::array<uint32_t, 256> ends;
  for (size_t at = 0;;) {
    const size_t count = scanner.scan(text, at, ends);
    if (count == 0) break;
    for (size_t i = 0; i < count; ++i) {
      encode_pretoken(text.substr(at, ends[i] - at), ids);
      at = ends[i];
    }
  }
}

void ByteBpeEncoder::encode_pretoken(std::string_view pretoken, std::vector<int32_t>& ids) {
  const PieceTable::Piece piece = state_->tables.pieces.find(pretoken, hash_text(pretoken));
  if (piece.id >= 0) {
    ids.push_back(piece.id);
  } else {
    state_->merger.merge(pretoken, ids);
  }
}

}  // namespace tokamak
