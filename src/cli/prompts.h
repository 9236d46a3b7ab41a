// The prompts of a command, from its command line, files or standard input.
#pragma once

#include <string>
#include <vector>

namespace tokamak::cli {

struct PromptOptions {
  std::vector<std::string> texts;  // as they are
  std::vector<std::string> files;  // each one prompt, without the line break at its end; "-": standard input
  std::vector<std::string> jsonl;  // each several: JSON lines with "prompt"; "-": standard input
};

// All of them, in this order. Error(kConfig) if there are none, or one is empty; Error(kData) naming file and line.
std::vector<std::string> read_prompts(const PromptOptions& options);

}  // namespace tokamak::cli
