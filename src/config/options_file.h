// Options of any kind from a YAML file, by the rules of load.h: those of `tokamak data prepare`.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "config/read.h"

namespace tokamak {

// `problems_of(options)` returns what else is wrong with them (std::vector<FieldError>).
template <class Options, class Problems>
Options load_options(const std::string& path, const std::vector<std::string>& overrides, const Problems& problems_of) {
  Options options;
  MergedTree merged(tree_of(options), read_text(path, Kind::kConfig), path, overrides);
  merged.binder.bind(merged.tree, "", options);
  if (!merged.problems.empty()) fail_with(merged.problems);
  fail_at(problems_of(options), merged.tree, path);
  return options;
}

}  // namespace tokamak
