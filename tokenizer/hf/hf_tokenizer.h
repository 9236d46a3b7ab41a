// Runs a TokenizerSpec: the ids and the decoded text of Hugging Face's `tokenizers`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/hf/added_tokens.h"
#include "tokenizer/hf/char_bpe.h"
#include "tokenizer/hf/decode_chain.h"
#include "tokenizer/hf/normalizer.h"
#include "tokenizer/hf/pre_tokenizer.h"
#include "tokenizer/hf/spec.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

class HfTokenizer final : public Tokenizer {
 public:
  // Error(kData) if the spec cannot be reproduced.
  HfTokenizer(TokenizerSpec spec, SpecialsPolicy specials);

  const TokenizerSpec& spec() const { return spec_; }
  std::string decode(std::span<const int32_t> ids) const override;
  std::unique_ptr<Encoder> make_encoder() const override;
  std::unique_ptr<StreamDecoder> make_stream_decoder() const override;
  std::string copy_files(const std::string& directory) const override;
  std::vector<std::pair<std::string, std::string>> settings() const override;

  // For its encoders and decoders.
  // The piece that decode() makes text of; nothing for an unused id, and for a special token.
  std::optional<std::string_view> decoded_piece(int32_t id) const;
  const AddedTokens& raw_tokens() const { return raw_tokens_; }
  const AddedTokens& normalized_tokens() const { return normalized_tokens_; }
  const Normalizer& normalizer() const { return normalizer_; }
  const PreTokenizer& pre_tokenizer() const { return pre_tokenizer_; }
  const ByteBpe* byte_bpe() const { return byte_bpe_.get(); }  // exactly one of the two is there
  const CharBpe* char_bpe() const { return char_bpe_.get(); }

 private:
  std::string_view piece_at(int32_t id) const override;
  PieceType kind_at(int32_t id) const override;
  std::vector<AddedToken> added_that_are(bool normalized) const;
  std::vector<std::optional<std::string>> decoded_added() const;
  void compile_model();

  TokenizerSpec spec_;
  SpecialsPolicy specials_;
  std::vector<int32_t> added_index_;  // by id: the index in spec_.added; -1: none
  Normalizer normalizer_;
  AddedTokens raw_tokens_;                                 // searched for before the text is normalized
  AddedTokens normalized_tokens_;                          // and after it
  std::vector<std::optional<std::string>> decoded_added_;  // by index in spec_.added: see decoded_piece()
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<ByteBpe> byte_bpe_;
  std::unique_ptr<CharBpe> char_bpe_;
};

}  // namespace tokamak
