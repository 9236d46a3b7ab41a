// Loads a config without validating it: text, overrides, references, types. load.cc and the tests use it.
#pragma once

#include <string>
#include <vector>

#include "config/bind.h"
#include "train/run_config.h"

namespace tokamak {

struct ReadConfig {
  RunConfig config;
  ConfigNode tree;  // defaults, file and overrides merged, references resolved: has the place of each value
};

ReadConfig read_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       RemovedKeys removed_keys = RemovedKeys::kRefuse);

}  // namespace tokamak
