// What the command line says after the file: KEY=VALUE.
#pragma once

#include <string>
#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Puts the value at the key's place in `root`; the value is YAML and replaces what was there. Keys that are not there
// are made, so that binding reports them with the place "command line: KEY=VALUE"; items of a list must exist.
void apply_override(ConfigNode& root, const std::string& override_text, std::vector<Problem>& problems);

}  // namespace tokamak
