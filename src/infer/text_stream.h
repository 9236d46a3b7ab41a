// Incremental detokenization: emits whole characters only, and holds back a possible prefix of a stop string.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

// The text of new tokens, decoded with the tokens before them: a piece loses its leading space only at the start of a
// text. A character of several tokens is emitted with its last byte.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, const std::vector<int32_t>& context)
      : decoder_(tokenizer.make_stream_decoder()) {
    for (const int32_t id : context) decoder_->push(id);
  }

  std::string next(int32_t id) { return decoder_->push(id); }  // the text that this token adds
  std::string rest() { return decoder_->finish(); }            // the text held back, at the end

 private:
  std::unique_ptr<StreamDecoder> decoder_;
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
