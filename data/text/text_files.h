// The text files that a user named: .txt and .jsonl, plain or compressed (.gz, .zst), given one by one or by directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

enum class TextFormat { kPlain, kJsonLines };

struct TextFile {
  std::string path;
  TextFormat format = TextFormat::kPlain;
  int64_t bytes = 0;  // of the file, compressed or not
};

// Files in the given order. A directory expands to the text files in it, recursively, sorted by name; its other files
// are skipped and counted in a warning. Error(kData) for a missing path, a file that is not text, text compressed
// otherwise, a duplicate file, or no text at all.
std::vector<TextFile> find_text_files(const std::vector<std::string>& inputs);

}  // namespace tokamak
