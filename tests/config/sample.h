// A small valid config, line by line, and the error that a config ends in.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"

namespace tokamak {

inline const std::string kSample =  // the first line is line 1
    "model:\n"
    "  hidden_size: 64\n"
    "  intermediate_size: 172\n"
    "  num_hidden_layers: 2\n"
    "  num_attention_heads: 4\n"
    "data:\n"
    "  sequence_length: 128\n"
    "  sources:\n"
    "    - path: some/data\n"
    "    - {path: other/data, weight: 3}\n"
    "training:\n"
    "  max_steps: 100\n"
    "  global_batch_tokens: 1024\n";
inline constexpr int kSampleLines = 13;

// The error of a config that must be refused with Error(kConfig): the sentence, and the hint in parentheses.
inline std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "c.yaml", overrides);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.hint().empty() ? error.what() : str(error.what(), " (", error.hint(), ")");
  }
  FAIL("accepted");
  return "";
}

// The sample with `line` after its end, which is line kSampleLines + 1.
inline std::string sample_and(const std::string& lines) { return kSample + lines + "\n"; }

}  // namespace tokamak
