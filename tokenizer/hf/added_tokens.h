// Finds added tokens in text as Hugging Face's `tokenizers` does: leftmost, the longest of several, without overlap.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/chars.h"
#include "tokenizer/hf/spec.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/user_symbols.h"

namespace tokamak {

// Immutable and shared by threads.
class AddedTokens {
 public:
  // `tokens` with the contents to search for, each once. Under kText a match of a special token is skipped as a whole.
  AddedTokens(std::vector<AddedToken> tokens, SpecialsPolicy specials);

  struct Span {
    size_t begin = 0;
    size_t end = 0;
    int32_t id = -1;  // -1: text between tokens
  };
  // Fills `spans` with tokens and the text between them, in order. A token's span covers the white space that it takes.
  // A token inside white space that the one before took makes a part come twice, as in the library that we copy.
  void cut(std::string_view text, std::vector<Span>& spans) const;

  bool empty() const { return tokens_.empty(); }

 private:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    const AddedToken* token = nullptr;
  };
  class Finder;
  bool is_single_word(std::string_view text, const Match& match) const;

  std::vector<AddedToken> tokens_;
  SpecialsPolicy specials_;
  UserSymbols symbols_;           // their ids are indices of tokens_
  std::string first_bytes_;       // the distinct first bytes of the contents
  std::bitset<65536> first_two_;  // first byte + 256 * second, of all contents
  CharSet words_;                 // if a token is single_word
};

}  // namespace tokamak
