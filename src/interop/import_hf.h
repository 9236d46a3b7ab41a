// Imports a Hugging Face model as the start of a run: a run directory with a checkpoint of step 0. Training starts from
// it with a new optimizer state, on any number of ranks.
//
//   OUT/checkpoints/step-00000000/    the weights, f32; no moments (they start at zero), no position in any data
//   OUT/config.yaml                   a whole config with the model's section; the user sets data and training
//   OUT/tokenizer.model               if the model has one; or tokenizer.json and what belongs to it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/hf_model.h"
#include "train/run_config.h"

namespace tokamak {

struct ImportOptions {
  std::string config;                  // YAML of a run that provides everything except the model; "": defaults
  std::vector<std::string> overrides;  // applied to that config
};

struct ImportReport {
  RunConfig config;        // as written
  int64_t parameters = 0;  //
  int64_t bytes = 0;       // of the checkpoint's files
  bool tokenizer = false;  // whether the model has one
};

// Writes the directory `out` atomically. It must not exist, or must be empty.
ImportReport import_hf(const HfModel& model, const ImportOptions& options, const std::string& out,
                       const Progress& progress);

}  // namespace tokamak
