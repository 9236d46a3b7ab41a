// ${section.key}: another key's value.
#pragma once

#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Replaces every reference in `root`, which holds the defaults too. Where a value is nothing but a reference, it may
// name a list or a section. Unknown keys, cycles and unclosed braces are added to `problems`.
void resolve_references(ConfigNode& root, std::vector<Problem>& problems);

}  // namespace tokamak
