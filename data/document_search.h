// Finds the documents that begin in a range of tokens, by binary search in an index on disk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

inline constexpr int64_t kStartsAtOnce = 256;  // entries per read

// `read(first, out)` fills `out` with the start of documents first, first + 1, ... in tokens. Starts ascend; equal ones
// belong to empty documents. Appends base + (start - first) for each start in [first, first + count), once for equal
// ones.
template <class Read>
void append_document_starts(int64_t documents, int64_t first, int64_t count, int64_t base, const Read& read,
                            std::vector<int32_t>& out) {
  std::array<int64_t, kStartsAtOnce> starts;
  int64_t low = 0;  // the first document at or after `first` lies in [low, high]
  int64_t high = documents;
  while (high - low > kStartsAtOnce / 4) {
    const int64_t middle = low + (high - low) / 2;
    read(middle, std::span(starts).first(1));
    (starts[0] < first ? low : high) = starts[0] < first ? middle + 1 : middle;
  }
  int64_t last = -1;
  while (low < documents) {
    const auto piece = std::span(starts).first(std::min(kStartsAtOnce, documents - low));
    read(low, piece);
    for (const int64_t start : piece) {
      if (start >= first + count) return;
      if (start >= first && start != last) out.push_back(static_cast<int32_t>(base + start - first));
      last = start;
    }
    low += std::ssize(piece);
  }
}

}  // namespace tokamak
