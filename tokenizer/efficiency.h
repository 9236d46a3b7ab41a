// How well tokenizers fit a text: tokens for its bytes, characters and words.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

struct TextSize {
  int64_t bytes = 0;
  int64_t characters = 0;  // code points; each invalid byte is one
  int64_t words = 0;       // runs without white space (Unicode's White_Space)

  void operator+=(const TextSize& other);
};

TextSize size_of_text(std::string_view text);

struct TokenCounts {
  int64_t tokens = 0;
  int64_t parts = 0;    // tokens that are bytes, or part of a character
  int64_t unknown = 0;  // unknown tokens: their text is lost

  void operator+=(const TokenCounts& other);
};

// Not for several threads: it has an encoder.
class EfficiencyMeter {
 public:
  explicit EfficiencyMeter(const Tokenizer& tokenizer);  // `tokenizer` must outlive it

  TokenCounts count(std::string_view text);

 private:
  int32_t unk_id_;
  std::vector<bool> is_part_;  // by id
  std::unique_ptr<Encoder> encoder_;
  std::vector<int32_t> ids_;
};

}  // namespace tokamak
