// Cuts normalized text into pretokens: the steps of a tokenizer.json's `pre_tokenizer`, each on the pieces of the one
// before. The last step stays a scanner where it can be one, so that the usual file (one pattern) copies nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hf/normalizer.h"
#include "tokenizer/hf/spec.h"
#include "tokenizer/hf/text_search.h"
#include "tokenizer/scan/scanner.h"

namespace tokamak {

// Pieces of one text, and the text itself where a step has rewritten it.
struct PieceList {
  struct One {
    size_t begin = 0;
    size_t end = 0;
    bool at_start = false;  // see TextPart
  };
  std::string_view text;
  std::vector<One> pieces;

  std::vector<One> next;  // buffers of the steps
  std::string written, next_written;
  std::vector<FoundPiece> found;
};

// Immutable and shared by threads.
class PreTokenizer {
 public:
  PreTokenizer(const std::vector<PreTokenizerStep>& all, const std::string& source);

  bool is_byte_level() const { return byte_level_; }
  // Whether the scanner alone does everything: then split() is not needed.
  bool is_scanner_only() const { return steps_.empty(); }
  // Cuts each piece of split() into pretokens; nullptr: each piece is one.
  const Scanner* scanner() const { return scanner_.get(); }
  // Fills `list` with the pieces of `part`; none is empty.
  void split(TextPart part, PieceList& list) const;

 private:
  struct Step {
    PreTokenizerStep what;
    std::unique_ptr<Scanner> scanner;  // where each match and each gap becomes a piece
    std::unique_ptr<TextSearch> search;
  };
  static Step compile(const PreTokenizerStep& step, const std::string& source);
  static void run(const Step& step, PieceList& list);

  std::vector<Step> steps_;
  std::unique_ptr<Scanner> scanner_;
  bool byte_level_ = false;
};

}  // namespace tokamak
