// RunConfig -> YAML that parse_config reads back to the same values, and -> the reference in docs/config.md.
#pragma once

#include <string>

#include "config/yaml.h"
#include "train/run_config.h"

namespace tokamak {

// Prints every field, including defaults. Numbers print in the shortest form that round-trips.
std::string print_config(const RunConfig& config, Help help = Help::kNone);

// As print_config, key by key.
std::vector<ConfigLine> config_values(const RunConfig& config);

// One key's value as plain text, neither quoted nor commented, for scripts. Error(kConfig) unless `key`
// ("run.output_dir") has a single value.
std::string print_value(const RunConfig& config, const std::string& key);

// A Markdown table per section: key, type, default, meaning.
std::string config_reference();

}  // namespace tokamak
