// RunConfig -> YAML that parse_config reads back to the same values, and -> the reference in docs/config.md.
#pragma once

#include <string>

#include "train/run_config.h"

namespace tokamak {

enum class Help { kNone, kTrailing };  // whether a comment with its help follows each key

// Every field, including defaults. Numbers print in the shortest form that round-trips.
std::string print_config(const RunConfig& config, Help help = Help::kNone);

// A Markdown table per section: key, type, default, meaning.
std::string config_reference();

}  // namespace tokamak
