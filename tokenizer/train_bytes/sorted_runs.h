// Counted words on disk, so that counting needs little memory: files sorted by word, and their merge. They are
// temporary and made by this process only, but a damaged one is still an error.
//
//   file    record*
//   record  u32 length of the word, i64 count, the word's bytes; little-endian
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct CountedText {
  std::string_view text;
  int64_t count = 0;
};

// `words` differ; sorts them.
void write_sorted_run(const std::string& path, std::vector<CountedText> words);

// Calls `take` with each word of all files once, in order, with its total count. Removes the files. `memory` is for the
// buffers, bytes. Merges in several passes if there are many files; those in between are written next to the first.
void merge_sorted_runs(std::vector<std::string> paths, int64_t memory, const std::function<void(CountedText)>& take);

}  // namespace tokamak
