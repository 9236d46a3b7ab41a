// Byte-pair encoding of one piece of text by the rules of bpe_rules.h, with a heap. It takes O(n log n) for any length.
// So a document without spaces costs no more per byte than another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_rules.h"

namespace tokamak {

class BpeWord {
 public:
  // A symbol of the result and the bytes of the text that it covers.
  struct Part {
    int32_t symbol;  // see BpeRules
    int64_t begin;
    int64_t length;
  };

  explicit BpeWord(const BpeRules& rules) : rules_(&rules) {}

  // `text` is valid UTF-8 with fewer than 2^31 characters. The result is valid until the next call.
  const std::vector<Part>& encode(std::string_view text);

 private:
  struct Node {
    int32_t symbol;
    int32_t previous;  // -1 at the ends
    int32_t next;
    int32_t stamp;  // changes with the node, so that older candidates are detected as stale
    int64_t begin;
    int64_t length;  // 0: merged into the left neighbour
  };
  struct Candidate {
    uint64_t order;  // rank, then position: the smallest merges first
    int32_t left_stamp;
    int32_t right;
    int32_t right_stamp;
    int32_t symbol;
  };

  void split(std::string_view text);
  void consider(int32_t left, int32_t right);
  void merge(const Candidate& candidate);

  const BpeRules* rules_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
  std::vector<Part> parts_;
};

}  // namespace tokamak
