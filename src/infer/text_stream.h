// Incremental detokenization: emits whole characters only, and holds back a possible prefix of a stop string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

// The text of new tokens, decoded with the tokens before them: a piece loses its leading space only at the start of a
// text. A character of several byte pieces is emitted with its last byte.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, std::vector<int32_t> context)
      : tokenizer_(&tokenizer), ids_(std::move(context)), shown_(ids_.size()) {}

  std::string next(int32_t id);  // the text that this token adds
  std::string rest() const;      // the text held back, at the end

 private:
  std::string added() const;

  const Tokenizer* tokenizer_;
  std::vector<int32_t> ids_;
  size_t from_ = 0;  // where decoding starts: a few tokens before the first that is not shown
  size_t shown_;     // tokens whose text was emitted
};

// Ends a text before the first stop string. If several stop strings end at the same place, the longest is cut off.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that can be emitted once `text` has arrived. Empty after a stop.
  std::string feed(std::string_view text);
  std::string rest();  // the text held back, at the end
  bool stopped() const { return stopped_; }

 private:
  size_t possible_beginning() const;  // index in `held_` where a stop-string prefix begins

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace tokamak
