// RunConfig -> YAML that parse_config reads back to the same values, and -> the reference in docs/config.md.
#pragma once

#include <string>

#include "train/run_config.h"

namespace tokamak {

enum class Help { kNone, kTrailing };  // whether each key is followed by its meaning, as a comment

// Every field, defaults included. Numbers print in the shortest form that reads back to the same bits.
std::string print_config(const RunConfig& config, Help help = Help::kNone);

// A Markdown table for each section: key, type, default, meaning.
std::string config_reference();

}  // namespace tokamak
