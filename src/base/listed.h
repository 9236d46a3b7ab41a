// Several problems in one error. One ends the sentence; of several each has a line of its own, so that no line grows with
// their number.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

// " PROBLEM", or the first `most` as "\n  PROBLEM" and then "\n  and N more".
std::string listed(std::vector<std::string> problems, size_t most = 5);

}  // namespace tokamak
