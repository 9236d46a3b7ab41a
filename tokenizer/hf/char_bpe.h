// BPE over the characters of a pretoken, with all that Hugging Face's model can do: byte fallback, unknown tokens,
// prefix and suffix. byte_bpe.h has the fast model for byte-level vocabularies.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "tokenizer/hf/spec.h"
#include "tokenizer/word_cache.h"

namespace tokamak {

// Immutable and shared by threads.
class CharBpe {
 public:
  // `model` must outlive it. Error(kData) if an unknown token is named that is no piece.
  CharBpe(const BpeSpec& model, const std::string& source);

  struct Merge {
    uint32_t rank = UINT32_MAX;  // UINT32_MAX: the pair does not merge
    int32_t result = -1;
  };
  Merge merge_of(int32_t left, int32_t right) const;
  const BpeSpec& model() const { return model_; }
  int32_t byte_id(unsigned char byte) const { return byte_ids_[byte]; }  // of "<0xHH>"; -1: there is none

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Merge merge;
  };
  size_t slot_of(uint64_t pair) const;

  const BpeSpec& model_;
  uint64_t factor_ = unpredictable_seed() | 1;  // of the hash: no file can choose pairs that collide
  std::vector<Slot> slots_;                     // open addressing, at most half full
  std::array<int32_t, 256> byte_ids_{};
};

// Encodes pretokens. It caches them, so each thread has its own.
class CharBpeEncoder {
 public:
  explicit CharBpeEncoder(const CharBpe& bpe) : bpe_(bpe) {}
  void encode(std::string_view pretoken, std::vector<int32_t>& ids);  // valid UTF-8

 private:
  struct Symbol {
    int32_t id = -1;  // -1: merged into the one before
    int64_t before = -1, after = -1;
  };
  struct Candidate {
    uint32_t rank;
    int64_t left;  // index of its left symbol
    int32_t result;
    bool operator<(const Candidate& other) const {  // a heap's top is the lowest rank, the leftmost of equals
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  void add_symbols(std::string_view pretoken);
  void add(int32_t id);
  void merge();
  void consider(int64_t left);

  const CharBpe& bpe_;
  WordCache cache_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
  std::vector<int32_t> word_;
  std::string character_;
};

}  // namespace tokamak
