// The text files that a user named: .txt and .jsonl, given one by one or by directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

enum class TextFormat { kPlain, kJsonLines };

struct TextFile {
  std::string path;
  TextFormat format = TextFormat::kPlain;
  int64_t bytes = 0;
};

// Files in the order given; a directory stands for the text files in it and below, by name. Other files in a directory
// are left out, and counted in a warning. Error(kData) for a path that is not there, a file that is not text,
// compressed text anywhere, the same file twice, or no text at all.
std::vector<TextFile> find_text_files(const std::vector<std::string>& inputs);

}  // namespace tokamak
