// What a run logged as curves: each value by name, against steps, tokens and hours. A curve that is too long for a page
// is cut into buckets of neighbouring records; a bucket keeps its mean, its least and its greatest, so a spike stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// A record, or a bucket of them. Its place is that of its last record.
struct SeriesPoint {
  int64_t step = 0;
  int64_t tokens = 0;
  double hours = 0;  // of wall clock since the run's first process began
  double mean = 0, low = 0, high = 0;
};

struct Series {
  std::string name;     // "loss/avg"
  int64_t records = 0;  // that it was made of
  std::vector<SeriesPoint> points;
};

// How many tokens a run has trained on before a step: what its records say, and in proportion between them.
class TokenScale {
 public:
  explicit TokenScale(
      const std::vector<MetricRecord>& records);  // their steps ascend; those without tokens are passed over
  int64_t at(int64_t step) const;                 // 0 where no record has any

 private:
  struct Mark {
    int64_t step = 0;
    double tokens = 0;
  };
  std::vector<Mark> marks_;
};

// At most `most` points, each of equally many records but for the last.
std::vector<SeriesPoint> downsample(const std::vector<SeriesPoint>& points, int64_t most);

// Of the values of `records`, whose steps ascend (monitor/history.h); in the order in which names appear. `tokens` and
// what has no time get no series. `begin`: when the first process began, in milliseconds since 1970. A record that does
// not know its tokens has those of `scale`.
std::vector<Series> series_of(const std::vector<MetricRecord>& records, int64_t begin, int64_t most,
                              const TokenScale& scale);

}  // namespace tokamak
