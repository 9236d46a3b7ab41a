// The config of a run, key by key, beside the defaults of this program.
#pragma once

#include <string>
#include <vector>

#include "report/page_run.h"

namespace tokamak::cli {

// Of DIRECTORY/config.yaml, which a run writes resolved; in its order. A key that this program does not know has no
// default. Nothing where there is no such file, or none that is YAML, which is a warning.
std::vector<ConfigEntry> read_run_config(const std::string& directory);

}  // namespace tokamak::cli
