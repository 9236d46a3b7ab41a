// YAML -> RunConfig. Whatever is wrong is an Error(kConfig) that gives place, key, value and, where one is near, the
// valid key or value; of several errors all are listed. Nothing is ever ignored or adjusted.
//
//   key: ${section.key}      takes another key's value, after overrides, or its default; also inside of text
//   250B 1.5M 64Ki           counts; must come out whole          5%   numbers
//   90s  3h50min             times (Duration)
//   2000  1B tokens  5%  2h  lengths of training (TrainingLength)         auto numbers the program may choose (AutoInt)
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak {

// The file at `path`, then `overrides` ("optimizer.lr=3e-4", "data.sources[0].weight=2"; the value is YAML), in order;
// references resolved, and validated (validate.h).
RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides);

// As load_config, from text; `name` stands for the file's name in messages.
RunConfig parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

}  // namespace tokamak
