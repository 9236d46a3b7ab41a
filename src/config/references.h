// ${section.key}: another key's value.
#pragma once

#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Replaces every reference in `root`, which includes the defaults. If a value consists of one reference, that may name
// a list or a section. Unknown keys, cycles and unclosed braces are added to `problems`; so is, once, a reference that
// takes the whole over its budget: ten lines can refer to one another a billion times.
void resolve_references(ConfigNode& root, std::vector<Problem>& problems);

}  // namespace tokamak
