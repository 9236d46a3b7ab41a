// The config of a run, key by key, with the defaults of this program.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"

namespace tokamak::cli {

struct ReportedConfig {
  std::vector<ConfigEntry> entries;
  int64_t parameters = 0;  // of the model; 0 if this program cannot read the config

  std::string value_of(std::string_view key) const;  // "" without such a key
};

// Reads DIRECTORY/config.yaml, the resolved config, in its order. Unknown keys have no default. Empty if the file is
// missing or, with a warning, not YAML.
ReportedConfig read_run_config(const std::string& directory);

}  // namespace tokamak::cli
