// Several problems in one error. A single one ends the sentence; several have a line each.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

// " PROBLEM", or the first `most` as "\n  PROBLEM" and then "\n  and N more".
std::string listed(std::vector<std::string> problems, size_t most = 5);

}  // namespace tokamak
