// Texts that a model generates for a task: each rank's share of the prompts, with the generator of `tokamak generate`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "infer/generator.h"
#include "tokenizer/tokenizer.h"

namespace tokamak {

struct TextsToGenerate {
  std::vector<GenerationRequest> requests;
  std::vector<std::string> stops;  // a text ends before them, and before EOS
  int64_t max_tokens = 0;          // new ones
  SamplingOptions sampling;
  const Tokenizer* tokenizer = nullptr;  // outlives this

  // The most tokens of a prompt and its text.
  int64_t longest() const;
};

// The texts, cut as the harness cuts them. Collective: the ranks share the requests, and each gets all texts. The
// engine has a cache for longest() tokens. Calls `between` between forward passes, on all ranks; it may throw.
//                                                                                                        (requests)
std::vector<std::string> generate_texts(Engine& engine, const TextsToGenerate& wanted,
                                        const std::function<void()>& between);

}  // namespace tokamak
