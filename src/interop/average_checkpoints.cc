#include "interop/average_checkpoints.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/run_files.h"
#include "base/staged.h"
#include "config/load.h"
#include "interop/export_source.h"
#include "interop/weights_checkpoint.h"
#include "model/parameters.h"

namespace tokamak {

CheckpointManifest average_checkpoints(std::vector<CheckpointReader> checkpoints, const std::string& out,
                                       const Progress& progress) {
  const auto newest = std::max_element(checkpoints.begin(), checkpoints.end(), [](const auto& a, const auto& b) {
    return a.manifest().point.state.step < b.manifest().point.state.step;
  });
  TrainingPoint point = newest->manifest().point;
  point.state.optimizer_start = 0;
  point.state.averages.clear();
  const ParamTable table = make_param_table(parse_saved_config(point.config, newest->directory()).model);
  for (const CheckpointReader& one : checkpoints) check_is_model(one, table);

  StagedOutput staged(out, StagedOutput::What::kDirectory, Kind::kCheckpoint);
  const std::string tokenizer = find_tokenizer(run_directory(*newest));
  if (tokenizer.empty()) {
    log::warning(run_directory(*newest), " has no tokenizer to copy: name one with --tokenizer where one is needed");
  } else {
    load_tokenizer(tokenizer)->copy_files(staged.staging());
  }
  std::vector<float> values;
  std::vector<double> sums;
  const auto read = [&](const std::string& name, int64_t first, std::span<float> mean) {
    sums.assign(mean.size(), 0);
    values.resize(mean.size());
    for (CheckpointReader& one : checkpoints) {
      one.read("master", name, first, values);
      for (size_t i = 0; i < mean.size(); ++i) sums[i] += double(values[i]);
    }
    for (size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(sums[i] / double(checkpoints.size()));
  };
  CheckpointManifest manifest =
      write_weights_checkpoint(run_files::at(staged.staging(), run_files::kCheckpoints), point, table, read, progress);
  staged.commit();
  return manifest;
}

}  // namespace tokamak
