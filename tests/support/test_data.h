// Finds files of the source tree for tests.
#pragma once

#include <string>

namespace tokamak {

std::string source_tree();
std::string test_data();  // the reference numbers of tests/golden, or what $TOKAMAK_TEST_DATA names: a package has them

}  // namespace tokamak
