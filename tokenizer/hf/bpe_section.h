// Vocabulary and merges of a tokenizer.json: its two large members, read without a tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/hf/json_cursor.h"
#include "tokenizer/hf/vocab_table.h"

namespace tokamak {

// `{"piece": id, ...}`. Error(kData): a piece or an id twice, or ids far beyond the number of pieces.
VocabTable read_vocab(JsonCursor& json);

// A list of "left right" or ["left", "right"]; the rank is the position. As in Hugging Face's BPE: of a pair that is
// there twice the later rank counts; a right part loses the first `prefix_bytes` bytes in the result. Error(kData): a
// part or a result is not in the vocabulary.
std::vector<BpeMerge> read_merges(JsonCursor& json, const VocabTable& pieces, size_t prefix_bytes);

// Keeps the last merge of each pair, in the order of ranks.
void keep_last_of_pairs(std::vector<BpeMerge>& merges);

}  // namespace tokamak
