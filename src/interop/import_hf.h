// A Hugging Face model as the start of a run: a run directory with a checkpoint of step 0, from which training goes on
// with a fresh optimizer, on any number of ranks.
//
//   OUT/checkpoints/step-00000000/    the weights, f32; no moments (they begin at zero), no place in any data
//   OUT/config.yaml                   a whole config with the model's section; data and training are for the user to
//   set OUT/tokenizer.model               where the model has one
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/hf_model.h"
#include "train/run_config.h"

namespace tokamak {

struct ImportOptions {
  std::string config;                  // YAML of a run to take everything but the model from; "": defaults
  std::vector<std::string> overrides;  // over that config
};

struct ImportReport {
  RunConfig config;        // as written
  int64_t parameters = 0;  //
  int64_t bytes = 0;       // of the checkpoint's files
  bool tokenizer = false;  // whether there was a tokenizer.model
};

// Writes the directory `out`, whole or not at all. It must not exist, or be empty.
ImportReport import_hf(const HfModel& model, const ImportOptions& options, const std::string& out,
                       const Progress& progress);

}  // namespace tokamak
