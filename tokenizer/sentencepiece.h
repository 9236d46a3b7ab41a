// A SentencePiece BPE model with our own encoder: the same ids as SentencePiece, several times faster. Models that we
// cannot reproduce exactly (unigram, a normaliser that rewrites text) are refused by name.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "tokenizer/bpe_rules.h"
#include "tokenizer/bpe_word.h"
#include "tokenizer/model_proto.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/user_symbols.h"

namespace tokamak {

// The model file and the tables compiled from it.
struct CompiledModel {
  CompiledModel(ModelProto model, const std::string& source);
  BpeWord::Unknown unknown() const { return {proto.trainer.byte_fallback ? &byte_ids : nullptr, proto.unk_id}; }

  ModelProto proto;
  std::array<int32_t, 256> byte_ids;  // -1 if the model has no byte pieces
  UserSymbols user_symbols;
  BpeRules rules;
  bool rewrites_spaces;  // whether a space has to become U+2581 before text is encoded
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(TokenizerInfo info, CompiledModel model)
      : Tokenizer(std::move(info)), model_(std::move(model)) {}

  std::string decode(std::span<const int32_t> ids) const override;  // joins byte pieces to characters
  std::unique_ptr<Encoder> make_encoder() const override;
  std::unique_ptr<StreamDecoder> make_stream_decoder() const override;
  std::string copy_files(const std::string& directory) const override;
  std::vector<std::pair<std::string, std::string>> settings() const override;
  double score(int32_t id) const override { return model_.proto.pieces[id].score; }
  const ModelProto& proto() const { return model_.proto; }

 private:
  std::string_view piece_at(int32_t id) const override { return model_.proto.pieces[id].text; }
  PieceType kind_at(int32_t id) const override { return model_.proto.pieces[id].type; }

  CompiledModel model_;
};

// Reads a ModelProto (tokenizer.model). Error(kData) if it is damaged or of an unsupported kind.
std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const std::string& path);

}  // namespace tokamak
