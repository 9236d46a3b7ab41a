// Prompts as requests of a generator: tokens, and a random stream for each.
#pragma once

#include <string>
#include <vector>

#include "infer/generator.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

// In the order of `prompts`; `bos` prepends the BOS token, which the tokenizer must have. A prompt's stream is named
// after its text and how often that was given before. So its samples do not depend on other prompts.
std::vector<GenerationRequest> make_requests(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                             bool bos);

}  // namespace tokamak
