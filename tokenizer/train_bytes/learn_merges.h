// Learns the merges of a byte-level BPE from counted words. The result equals that of Hugging Face's BpeTrainer, whose
// 256 byte characters are the initial alphabet: https://github.com/huggingface/tokenizers, models/bpe/trainer.rs.
// Counts are int64_t here; there they overflow at 2^31.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/train_bytes/word_list.h"

namespace tokamak {

struct LearnOptions {
  int64_t vocab_size = 0;
  int64_t min_frequency = 0;              // a pair of a lower count, or of none, is not merged
  int64_t max_token_length = 0;           // bytes; 0: no limit. As there, a longer piece than two bytes has fewer bytes
  std::vector<std::string> first_pieces;  // they have the first ids
};

struct LearnedMerges {
  std::vector<std::string> pieces;                    // by id, in printable characters
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // ids, by rank; each pair once
  int64_t last_count = 0;                             // of the last merge; 0: there is none
  int64_t peak_bytes = 0;                             // of the tables, words included
};

// Called now and then with the number of pieces.
using LearnProgress = std::function<void(int64_t pieces)>;

LearnedMerges learn_merges(WordList words, const LearnOptions& options, const LearnProgress& progress);

}  // namespace tokamak
