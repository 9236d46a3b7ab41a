// The merge rules of a SentencePiece BPE vocabulary as the tables of bpe/. A symbol is a piece or a character between
// two merges. SentencePiece's rule: of all adjacent pairs whose concatenation is a piece, merge the pair with the
// highest score, the leftmost of equals; repeat until no pair is a piece.
//
// Text may have spaces where pieces have U+2581, so that it need not be rewritten. It has one of the two everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/cut_scanner.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/piece_table.h"
#include "tokenizer/model_proto.h"

namespace tokamak {

class BpeRules {
 public:
  static constexpr uint32_t kNoSymbol = UINT32_MAX;

  // Error(kData), naming `source`, for more symbols than a PairTable can have.
  BpeRules(const std::vector<Piece>& pieces, const std::string& source);

  // The id of a piece; kNoSymbol for a character that occurs in no piece. A character that occurs in pieces but is not
  // one has a number above the vocabulary.
  uint32_t symbol(char32_t c) const { return c < symbols_.size() ? symbols_[c] : kNoSymbol; }
  bool is_piece(uint32_t symbol) const { return symbol < vocab_size_; }
  std::string_view character(uint32_t symbol) const { return characters_[symbol - vocab_size_]; }  // of no piece

  // The rank of a pair of characters that have symbols.
  uint32_t rank(char32_t left, char32_t right) const {
    return (left | right) < 0x80 ? pairs_.rank_of_bytes(static_cast<uint8_t>(left), static_cast<uint8_t>(right))
                                 : pairs_.rank(symbols_[left], symbols_[right]);
  }

  const PairTable& pairs() const { return pairs_; }
  std::span<const uint32_t> last_equals() const { return last_equals_; }  // see SymbolMerger
  const PieceTable& pieces() const { return pieces_; }                    // those that their own text becomes
  const CutScanner& scanner() const { return scanner_; }  // between characters that no piece has side by side

 private:
  void number_characters(const std::vector<Piece>& pieces);
  std::vector<uint32_t> symbols_of(std::string_view text) const;
  std::vector<BpeMerge> merges_of(const std::vector<Piece>& pieces) const;
  std::vector<BpeMerge> without_unused(const std::vector<BpeMerge>& merges, const std::vector<Piece>& pieces) const;
  void build_pairs(const std::vector<Piece>& pieces);
  void build_pieces(const std::vector<Piece>& pieces);

  uint32_t vocab_size_;
  std::vector<uint32_t> symbols_;  // by code point
  std::vector<std::string> characters_;
  PairTable pairs_;
  std::vector<uint32_t> last_equals_;
  PieceTable pieces_;
  CutScanner scanner_;
};

}  // namespace tokamak
