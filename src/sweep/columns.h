// A table of text: the first column at the left, the others at the right, as wide as their widest cells.
#pragma once

#include <string>
#include <vector>

namespace tokamak {

std::string columns_text(const std::vector<std::vector<std::string>>& rows);  // each line ends in '\n'

}  // namespace tokamak
