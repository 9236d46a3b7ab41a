// The stages between a text file and its tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/prepare/stage.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

std::unique_ptr<Stage> parse_stage(std::string json_key);  // parse_text()
std::unique_ptr<Stage> blank_stage();                      // drops texts of white space
// Fills ids, with BOS before and EOS after; -1: without. `tokenizer` must outlive the stage.
std::unique_ptr<Stage> encode_stage(const Tokenizer& tokenizer, int32_t bos_id, int32_t eos_id);

}  // namespace tokamak
