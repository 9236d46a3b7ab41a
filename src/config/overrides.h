// Command-line overrides: KEY=VALUE.
#pragma once

#include <string>
#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Sets the value at the key's path in `root`; the value is YAML and replaces the old one. Missing keys are created, so
// that binding reports them with the place "command line: KEY=VALUE"; items of a list must exist.
void apply_override(ConfigNode& root, const std::string& override_text, std::vector<Problem>& problems);

}  // namespace tokamak
