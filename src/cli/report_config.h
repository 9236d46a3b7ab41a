// The config of a run, key by key, beside the defaults of this program.
#pragma once

#include <string>
#include <vector>

#include "report/page_run.h"

namespace tokamak::cli {

struct ReportedConfig {
  std::vector<ConfigEntry> entries;
  int64_t parameters = 0;  // of the model; 0 where this program cannot read it as a config

  std::string value_of(std::string_view key) const;  // "" where it has none
};

// Of DIRECTORY/config.yaml, which a run writes resolved; in its order. A key that this program does not know has no
// default. Empty where there is no such file, or none that is YAML, which is a warning.
ReportedConfig read_run_config(const std::string& directory);

}  // namespace tokamak::cli
