// YAML <-> ConfigNode. yaml.cc is the only file that includes yaml-cpp.
#pragma once

#include <string>
#include <vector>

#include "config/config_tree.h"

namespace tokamak {

// Each node's place is "NAME:LINE". Bad YAML is an Error(kConfig); duplicate keys are added to `problems`.
ConfigNode parse_yaml(const std::string& text, const std::string& name, std::vector<Problem>& problems);

// As parse_yaml, for the value of an override: every node has the place `place`.
ConfigNode parse_yaml_value(const std::string& text, const std::string& place, std::vector<Problem>& problems);

enum class Help { kNone, kTrailing };  // whether a comment follows each key; not in lists, which would repeat it

// Block style, two spaces per level, lists of scalars in brackets.
std::string emit_yaml(const ConfigNode& root, Help help);

}  // namespace tokamak
