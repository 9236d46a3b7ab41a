// Trains a tokenizer: SentencePiece's BPE trainer with the settings of Llama's tokenizer (identity normalisation, byte
// fallback, single digits, white space kept; <unk> 0, <s> 1, </s> 2). Equal text and options give equal files anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tokamak {

struct TokenizerTrainOptions {
  int64_t vocab_size = 32000;
  double character_coverage = 0.99995;
  int64_t input_sentence_size = 10'000'000;
  int64_t max_sentence_length = 4192;
  int64_t max_piece_length = 16;
  bool split_digits = true;
  std::vector<std::string> user_defined_symbols;
  std::string json_key = "text";

  template <class Visitor>
  void fields(Visitor& v) {
    v("vocab_size", vocab_size, "pieces, with the special ones and 256 bytes; a multiple of 128 multiplies fastest");
    v("character_coverage", character_coverage,
      "share of the text's characters that get pieces of their own, 0.98 to 1; the rarer ones become bytes");
    v("input_sentence_size", input_sentence_size,
      "lines to train on, sampled evenly from all (fixed seed); 0: all lines. Memory grows with it");
    v("max_sentence_length", max_sentence_length, "longer lines are left out; bytes, at most 32767");
    v("max_piece_length", max_piece_length, "longest piece, characters");
    v("split_digits", split_digits, "each digit is a piece of its own");
    v("user_defined_symbols", user_defined_symbols, "strings that are always one piece, wherever they stand");
    v("json_key", json_key, "member that holds the text in .jsonl files");
  }
};

struct TokenizerTrainReport {
  int64_t lines = 0;          // read, including skipped ones
  int64_t bytes = 0;          // of those lines
  int64_t too_long = 0;       // skipped lines: longer than max_sentence_length
  int64_t with_reserved = 0;  // skipped lines: with U+2585, which the trainer reserves
  std::string hash;           // of the model written
};

// Fills `line` with the next line of the corpus (UTF-8, no '\n'); false at the end.
using NextLine = std::function<bool(std::string& line)>;

// Trains on the lines and writes the model to `output` atomically. Error(kConfig) for options out of range,
// Error(kData) if the text is unsuitable for them. Exceptions of `next` propagate.
TokenizerTrainReport train_tokenizer(const NextLine& next, const TokenizerTrainOptions& options,
                                     const std::string& output);

}  // namespace tokamak
