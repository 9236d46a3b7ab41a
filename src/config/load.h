// YAML -> RunConfig. Any problem is an Error(kConfig) with place, key, value and the nearest valid key or value, if one
// is similar. All problems are listed. Nothing is ignored or adjusted.
//
//   key: ${section.key}      another key's value after overrides, or its default; also inside text
//   250B 1.5M 64Ki           counts; must be integers             5%   numbers
//   90s  3h50min             times (Duration)
//   2000  1B tokens  5%  2h  lengths of training (TrainingLength).
//   auto                     numbers that the program may choose (AutoInt, AutoLimit).
#pragma once

#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "train/run_config.h"

namespace tokamak {

// Reads the file at `path`, applies `overrides` in order ("optimizer.lr=3e-4", "data.sources[0].weight=2"; the value is
// YAML), resolves references, and validates (validate.h).
RunConfig load_config(const std::string& path, const std::vector<std::string>& overrides);

// Throws problems that were found after loading the config of this file and these overrides, each with its place.
void fail_with_places(const std::vector<FieldError>& found, const std::string& path,
                      const std::vector<std::string>& overrides);

// As load_config, from text; `name` replaces the file name in messages.
RunConfig parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

// The config inside a checkpoint, which may have keys of earlier versions. A problem in it is an Error(kCheckpoint).
RunConfig parse_saved_config(const std::string& text, const std::string& manifest_path);

// The config of a checkpoint's weights: of a run with stages, that of the stage which its step belongs to.
RunConfig config_of_checkpoint(const CheckpointReader& reader);

}  // namespace tokamak
