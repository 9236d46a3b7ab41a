// Tokens to text as they come: whole characters only, and nothing that may be the beginning of a stop string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

// The text of new tokens, in the context of those before: a piece loses its leading space only where a text begins. A
// character of several byte pieces comes with its last byte.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, std::vector<int32_t> context)
      : tokenizer_(&tokenizer), ids_(std::move(context)), shown_(ids_.size()) {}

  std::string next(int32_t id);  // what this token adds
  std::string rest() const;      // what was held back, at the end

 private:
  std::string added() const;

  const Tokenizer* tokenizer_;
  std::vector<int32_t> ids_;
  size_t from_ = 0;  // where decoding begins: some tokens before those that are shown
  size_t shown_;     // tokens whose text has been given
};

// Ends a text before the first of some strings; of several that end at the same place, before the longest.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What can be shown now that `text` has come. After a stop, nothing more.
  std::string feed(std::string_view text);
  std::string rest();  // what was held back, at the end
  bool stopped() const { return stopped_; }

 private:
  size_t possible_beginning() const;  // of a stop string at the end of what is held

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace tokamak
