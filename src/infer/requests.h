// Prompts as a generator takes them: their tokens, and a stream of random numbers for each.
#pragma once

#include <string>
#include <vector>

#include "infer/generator.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

// In the order of `prompts`; with the BOS token first where `bos` (the tokenizer then has one). A prompt's stream follows
// from its text and how often it was given before, so that its choices do not depend on the others.
std::vector<GenerationRequest> make_requests(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                             bool bos);

}  // namespace tokamak
