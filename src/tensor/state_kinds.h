// Names of the kinds of state that both their owner and checkpoints know.
#pragma once

#include <string_view>

namespace tokamak {

inline constexpr std::string_view kAveragePrefix = "average/";  // before the name of an average of the weights

}  // namespace tokamak
