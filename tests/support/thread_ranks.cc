#include "support/ranks.h"

namespace tokamak {

void on_ranks(const RankBody& body) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    INFO(ranks << " ranks");
    on_threads(ranks, body);
  }
}

}  // namespace tokamak
