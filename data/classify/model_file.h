// fastText's format of models, as far as it tells whether a file is whole. fastText reads a file that is cut without an
// error: it takes zeros for what is missing, or sizes that no memory has.
#pragma once

#include <string>

namespace tokamak {

// Error(kData), with the place, for a file that is no model (.bin, .ftz), is cut, or has other sizes than it says.
void check_model_file(const std::string& path);

}  // namespace tokamak
