// Which source sample k comes from. A pure function of what it was made with and k. Thread-safe.
#pragma once

#include <cstdint>

namespace tokamak {

class SourceSchedule {
 public:
  struct Draw {
    int64_t source;
    int64_t index;  // among the samples of that source
  };

  virtual ~SourceSchedule() = default;

  virtual int64_t memory_bytes() const = 0;                          // host memory of its arrays
  virtual Draw at(int64_t k) const = 0;                              // k >= 0
  virtual int64_t count(int64_t source, int64_t samples) const = 0;  // how many of samples [0, samples) are of `source`
};

}  // namespace tokamak
