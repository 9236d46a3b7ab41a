// Passes over all files of a source: the lengths of its documents, and its faults.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "data/stores/source.h"
#include "data/verify.h"

namespace tokamak {

// Documents by length: counts[0] has the empty ones, counts[b] those of 2^(b-1) to 2^b - 1 tokens.
struct LengthHistogram {
  std::array<int64_t, 64> counts{};
  std::array<int64_t, 64> tokens{};
  int64_t documents = 0;
  int64_t longest = 0;
};

// Reads indexes only, where there are any. `progress`: bytes of tokens that were passed, and all. Error(kData) if
// nothing says where documents begin, or an index is damaged.
LengthHistogram document_lengths(const TokenStores& stores, const std::function<void(int64_t, int64_t)>& progress = {});

struct SourceReport : VerifyReport {
  int32_t largest_id = -1;
  std::string checksums;  // of other programs' files: which were checked, "without checksums"
};

// Verifies a source of any format; ours by verify_dataset(). Checks every entry of an index, that documents and tokens
// add up, and that all ids lie in the vocabulary, if it is known. MDS may have checksums, other formats have none.
// Throws Error(kData) only if the files are of no known format, or text.
SourceReport verify_source(const SourceOptions& source, const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace tokamak
