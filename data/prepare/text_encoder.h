// The tokenizer interface of data preparation. Tests replace it with their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace tokamak {

struct TextEncoder {
  using Encode = std::function<void(std::string_view text, std::vector<int32_t>& ids)>;  // appends

  std::string name;  // for display
  std::string hash;  // the tokenizer's identity
  std::string file;  // copied into each data set as tokenizer.model; "": nothing to copy
  int64_t vocab_size = 0;
  int32_t eos_id = -1;  // -1: none, likewise below
  int32_t bos_id = -1;
  std::function<Encode()> make;  // creates one encoder per thread
};

TextEncoder text_encoder(const Tokenizer& tokenizer);  // must outlive the result

}  // namespace tokamak
