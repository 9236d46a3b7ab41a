// BPE over the characters of a pretoken, with all that Hugging Face's model can do: byte fallback, unknown tokens,
// prefix and suffix. byte_bpe.h has the fast model for byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/cut_scanner.h"
#include "tokenizer/bpe/pair_table.h"
#include "tokenizer/bpe/piece_table.h"
#include "tokenizer/bpe/pretoken_merger.h"
#include "tokenizer/bpe/symbol_merge.h"
#include "tokenizer/hf/spec.h"

namespace tokamak {

// Immutable and shared by threads.
class CharBpe {
 public:
  // `model` must outlive it. Error(kData) if an unknown token is named that is no piece, or for more ids or merges than
  // a PairTable can have.
  CharBpe(const BpeSpec& model, const std::string& source);

  const BpeSpec& model() const { return model_; }
  const PairTable& pairs() const { return pairs_; }
  const PieceTable& pieces() const { return pieces_; }  // empty: see ByteBpeEncoder
  // Cuts a pretoken into parts that can be encoded separately; nullptr: this model's pretokens must stay whole.
  const Scanner* cuts() const { return cuts_ ? &*cuts_ : nullptr; }
  bool has_affixes() const;  // whether a character may have a prefix or a suffix
  // The id of a piece of one character; -1: there is none.
  int32_t id_of(char32_t c) const { return c < ids_.size() ? ids_[c] : -1; }
  int32_t byte_id(unsigned char byte) const { return byte_ids_[byte]; }  // of "<0xHH>"; -1: there is none

 private:
  bool may_cut() const;

  const BpeSpec& model_;
  PairTable pairs_;
  PieceTable pieces_;
  std::vector<int32_t> ids_;  // by code point
  std::array<int32_t, 256> byte_ids_{};
  std::optional<CutScanner> cuts_;
};

class CharMerger final : public PretokenMerger {
 public:
  explicit CharMerger(const CharBpe& bpe) : bpe_(bpe), merger_(bpe.pairs()) {}
  void merge(std::string_view pretoken, std::vector<int32_t>& ids) override;  // valid UTF-8
  bool may_grow() const override { return bpe_.has_affixes(); }

 private:
  void add_symbols(std::string_view pretoken);
  int32_t id_of(std::string_view pretoken, size_t at, size_t length);
  void add(int32_t id) { symbols_.push_back(static_cast<uint32_t>(id)); }

  const CharBpe& bpe_;
  SymbolMerger merger_;
  std::vector<uint32_t> symbols_, ranks_;
  std::string character_;  // with its prefix and suffix
};

}  // namespace tokamak
