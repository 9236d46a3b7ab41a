// ${section.key}: another key's value.
#pragma once

#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Replaces every reference in `root`, which includes the defaults. A value that consists of one reference may name a
// list or a section. Adds unknown keys, cycles and unclosed braces to `problems`. A reference that exceeds the budget
// of all copies is added once: ten lines can refer to one another a billion times.
void resolve_references(ConfigNode& root, std::vector<Problem>& problems);

}  // namespace tokamak
