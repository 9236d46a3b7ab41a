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

// The first steps, for options of any kind: `defaults` with text and overrides over them, and references resolved.
struct MergedTree {
  ConfigNode tree;
  std::vector<Problem> problems;  // unknown keys; others are thrown
  Binder binder;                  // adds to `problems`

  MergedTree(ConfigNode defaults, const std::string& text, const std::string& name,
             const std::vector<std::string>& overrides, RemovedKeys removed_keys = RemovedKeys::kRefuse);
  MergedTree(const MergedTree&) = delete;
};

// Throws problems of the tree that was read from `name`, each with its place.
void fail_at(const std::vector<FieldError>& found, ConfigNode& tree, const std::string& name);

}  // namespace tokamak
