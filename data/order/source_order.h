// The order of one source: which tokens of its data set are its sample j. Every implementation is a pure function of
// what it was made with and j, so that a resume needs no replay. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

struct TokenRange {
  int64_t first = 0;  // position in the data set
  int64_t count = 0;

  bool operator==(const TokenRange&) const = default;
};

// How the ranges of a sample of T positions make its tokens and targets.
enum class RangeKind {
  kText,       // one range of T + 1 tokens; documents begin wherever the data set says
  kDocuments,  // T + 1 tokens in all; each range lies in one document, and its last target is the next range's token
  kRows,       // each range lies in one document and its last token is only a target; at most T positions, then padding
};

class SourceOrder {
 public:
  virtual ~SourceOrder() = default;

  virtual RangeKind kind() const = 0;
  virtual int64_t epoch() const = 0;                  // samples of one epoch
  virtual int64_t memory_bytes() const { return 0; }  // host memory of its arrays
  // Replaces `out` by the ranges of sample j >= 0.
  virtual void ranges(int64_t j, std::vector<TokenRange>& out) const = 0;
};

}  // namespace tokamak
