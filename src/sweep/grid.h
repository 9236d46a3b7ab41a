// The runs of a sweep: every combination of the values of its overrides, over one config. A run's ID has its overrides
// in words, and a hash of the resolved config. So a changed config makes other runs, and never resumes old ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/table.h"
#include "train/run_config.h"

namespace tokamak {

struct GridKey {
  std::string key;
  std::vector<std::string> values;  // at least one, as YAML
};

// Reads "optimizer.lr=1e-3,2e-3". Commas inside brackets, braces and quotes belong to a value. Error(kConfig) for a key
// that is given twice or belongs to the sweep, and for an empty value.
std::vector<GridKey> parse_grid(const std::vector<std::string>& words);

struct SweepRun {
  SweepRow row;      // waiting
  RunConfig config;  // resolved, with the run's name and directory; model.vocab_size as in the file
  int64_t tokens = 0, steps = 0;
  double flops = 0;  // of the whole run, mfu_full's count
};

struct SweepPlan {
  std::string directory;
  std::vector<SweepRun> runs;

  std::string table() const { return directory + "/table.jsonl"; }
};

inline std::string run_directory(const std::string& sweep, const std::string& id) { return sweep + "/runs/" + id; }
// The config that a run is started with: an edit of the user's file cannot reach runs that begin later.
inline std::string config_path(const std::string& sweep, const std::string& id) {
  return sweep + "/configs/" + id + ".yaml";
}

// Resolves every run's config. The last key varies fastest. `name` is the sweep's, "": the config's run.name. Its
// directory is sweeps/NAME beside run.output_dir: runs/sweeps/NAME by default, and where the user keeps runs otherwise.
// Error(kConfig) if two runs are equal.
SweepPlan plan_sweep(const std::string& config_path, const std::vector<GridKey>& grid, const std::string& name);

// Error(kConfig) if a run of this ID exists whose config differs in more than paths, naming the keys.
void expect_same_config(const SweepRun& run, const std::string& directory);

}  // namespace tokamak
