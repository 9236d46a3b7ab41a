// Byte-level BPE models and texts made at random, and the definition of merging, written as plainly as possible.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/bpe/byte_bpe.h"

namespace tokamak {

// Ids in no order, ranks in no order of ids, pieces that no merge makes, pieces of parts of characters. Half of the
// models give all merges with the same result one rank, as tiktoken does.
ByteBpeModel random_bpe_model(std::mt19937_64& random);

// Valid UTF-8 of about `length` characters, most of which are in the pieces of random_bpe_model.
std::string random_bpe_text(std::mt19937_64& random, uint64_t length);

// Cuts before each space.
class SpaceScanner final : public Scanner {
 public:
  size_t scan(std::string_view text, size_t at, std::span<uint32_t> ends) const override;
};

// The definition: of all pairs of neighbours that may merge, the one of the lowest rank does, the leftmost of equals.
class NaiveBpe {
 public:
  explicit NaiveBpe(const ByteBpeModel& model);

  std::vector<int32_t> merge(std::string_view pretoken) const;
  std::vector<int32_t> encode(std::string_view text) const;  // cut by a SpaceScanner

 private:
  bool whole_pieces_;
  std::map<std::string, int32_t, std::less<>> ids_;
  std::map<std::pair<int32_t, int32_t>, BpeMerge> merges_;
};

}  // namespace tokamak
