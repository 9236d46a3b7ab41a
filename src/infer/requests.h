// Prompts as requests of a generator: tokens, and a random stream for each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "infer/generator.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

// Names each text's random stream after its prompt and how often that was given before. So a prompt's samples do not
// depend on other prompts.
class StreamNames {
 public:
  std::string next(const std::string& prompt);

 private:
  std::map<std::string, int64_t> times_;
};

// In the order of `prompts`; `bos` prepends the BOS token, which the tokenizer must have.
std::vector<GenerationRequest> make_requests(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
                                             bool bos);

}  // namespace tokamak
