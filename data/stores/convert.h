// Streams the documents of a source, of any format, into another format: in bounded memory, the same tokens in the same
// order and documents. Reads what training cannot, too: sequences out of order, pointers that overflowed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/staged.h"
#include "data/options.h"

namespace tokamak {

enum class ConvertTo { kTokamak, kMegatron, kDatatrove, kLlmc };
inline const std::vector<std::string>& enum_names(ConvertTo) {
  static const std::vector<std::string> names = {"tokamak", "megatron", "datatrove", "llmc"};
  return names;
}

struct ConvertOptions {
  SourceOptions source;
  ConvertTo to = ConvertTo::kTokamak;
  std::string output;  // a directory, which appears whole or not at all; it may exist if it is empty
  int64_t shard_tokens = 4'000'000'000;
  std::string tool = "tokamak";  // recorded in a manifest of ours
};

struct ConvertReport {
  int64_t files = 0;  // of the source
  int64_t documents = 0;
  int64_t tokens = 0;
};

// `progress` is called after each part with the bytes of tokens read, and all bytes. It may throw; nothing remains
// then.
// Error(kConfig): the output needs the tokenizer (ours) or a delimiter (llm.c's), and neither source nor options have
// it. Error(kData): damage, or ids that do not fit.
ConvertReport convert(const ConvertOptions& options, const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace tokamak
