// Ranks that compute longer than the others, by robust statistics: the median and the median absolute deviation (MAD)
// of seconds per step, which a straggler hardly moves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tokamak {

struct Straggler {
  int rank = 0;
  double seconds = 0;  // that it computes per step
  double median = 0;   // of all ranks
  std::string name;    // "rank 3 (on n2)"; the watchdog sets it
};

class StragglerDetector {
 public:
  static constexpr int kIntervals = 3;  // in a row
  static constexpr double kDeviations = 5;
  static constexpr double kShare = 0.2;  // least excess, as a share of the median
  static constexpr size_t kLeastRanks = 3;

  // Takes the seconds per step of an interval, by rank. Returns the ranks that exceeded median + max(5 MAD, 20 %) in
  // three intervals in a row. A rank is returned again only after it has fallen below.
  std::vector<Straggler> see(const std::vector<double>& seconds);

 private:
  std::vector<int> over_;  // over the limit: intervals in a row, by rank
};

}  // namespace tokamak
