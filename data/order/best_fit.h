// Best-fit decreasing: puts pieces of documents into rows of T positions, the longest first. Each goes into the fullest
// row that has room (Ding et al., "Fewer Truncations Improve Language Modeling", ICML 2024). Takes O(n log T) time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/order/sorted_set.h"
#include "data/order/source_order.h"

namespace tokamak {

class BestFit {
 public:
  explicit BestFit(int64_t length);  // T

  using Emit = std::function<void(std::span<const TokenRange> row)>;
  // Calls emit(row) for the rows of `pieces`, each of 1 to T positions. The pieces of a row are in the order in which
  // they were put there. Pieces of equal length keep their order.
  void pack(std::span<const TokenRange> pieces, const Emit& emit);

 private:
  struct Row {
    int64_t room = 0;
    int64_t first = -1, last = -1;  // sorted pieces, a list by next_
    int64_t below = -1;             // another row with as much room
  };
  void put_aside(int64_t row);

  int64_t length_;
  SortedSet rooms_;               // of the rows that are not full
  std::vector<int64_t> by_room_;  // (T) a row with so much room; -1: none
  std::vector<Row> rows_;
  std::vector<int64_t> next_;  // (pieces) the next piece of the row
};

}  // namespace tokamak
