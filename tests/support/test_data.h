// Where the reference numbers of tests/golden lie: in the source tree, or where $TOKAMAK_TEST_DATA says, for a test
// program that has been moved away from it.
#pragma once

#include <cstdlib>
#include <string>

namespace tokamak {

inline std::string test_data() {
  const char* moved = std::getenv("TOKAMAK_TEST_DATA");
  return moved != nullptr ? moved : TOKAMAK_TEST_DATA;
}

}  // namespace tokamak
