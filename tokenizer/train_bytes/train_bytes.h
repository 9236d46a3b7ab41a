// Trains a byte-level BPE and writes it as tokenizer.json, which Hugging Face's `tokenizers` loads. Equal text and
// options give equal files, for any number of threads. Pretokens are counted in a bounded memory; their merges are
// learned in memory that grows with the distinct pretokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tokenizer/train_bytes/bytes_pattern.h"

namespace tokamak {

struct BytesTrainOptions {
  int64_t vocab_size = 32000;
  std::string pattern = "llama3";
  Digits digits = Digits::kOfPattern;
  int64_t min_frequency = 2;
  int64_t max_token_length = 0;
  std::vector<std::string> special_token;
  std::string bos_token, eos_token = "<|endoftext|>";
  int64_t memory = int64_t{4} << 30;

  // Without vocab_size and digits, which the command line declares itself.
  template <class Visitor>
  void fields(Visitor& v) {
    v("pattern", pattern,
      "how text is cut before merging: gpt2, llama3, qwen2, o200k, ... (an unknown name lists all)");
    v("min_frequency", min_frequency, "rarer pairs are not merged, though the vocabulary becomes smaller");
    v("max_token_length", max_token_length, "a merged token has fewer bytes, unless it has two; 0: no limit");
    v("special_token", special_token, "string that is always one token; give the option once for each");
    v("bos_token", bos_token, "BOS token; added to the special tokens");
    v("eos_token", eos_token, "EOS token, which ends each document; added to the special tokens");
    v("memory", memory, "bytes for counting; beyond them, counts wait on disk next to the output. Less is slower");
  }
};

// A text that counts `times` times.
struct TrainingText {
  std::string text;  // invalid bytes become U+FFFD
  int64_t times = 1;
};

// Fills `texts` with the next ones; false if there are none. Several threads call it concurrently.
using NextTexts = std::function<bool(std::vector<TrainingText>& texts)>;

struct BytesTrainReport {
  int64_t bytes = 0;  // of the text, each counted once
  int64_t pretokens = 0;
  int64_t distinct = 0;  // pretokens
  int64_t runs = 0;      // files of counts that were written because the memory was full
  int64_t pieces = 0;
  int64_t merges = 0;
  int64_t last_count = 0;     // of the last merged pair
  int64_t merging_bytes = 0;  // memory of the merging
  double counting_seconds = 0, merging_seconds = 0;
};

// Writes `output`, named *.json, and tokenizer_config.json in its directory. `learned` gets the number of pieces so
// far. Error(kConfig) for options out of range and beside another tokenizer's tokenizer_config.json, Error(kData)
// without any text. Exceptions of `next` and `learned` propagate.
BytesTrainReport train_bytes(const NextTexts& next, const BytesTrainOptions& options, const std::string& output,
                             const std::function<void(int64_t pieces)>& learned);

}  // namespace tokamak
