// The one file compiled with the tree's path in it, so that clones share ccache's results for the others.
#include "support/test_data.h"

#include <cstdlib>

namespace tokamak {

std::string source_tree() { return TOKAMAK_SOURCE_TREE; }

std::string test_data() {
  const char* moved = std::getenv("TOKAMAK_TEST_DATA");
  return moved != nullptr ? moved : source_tree() + "/tests/golden";
}

}  // namespace tokamak
