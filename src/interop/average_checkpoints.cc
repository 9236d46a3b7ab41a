#include "interop/average_checkpoints.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "base/run_files.h"
#include "base/staged.h"
#include "config/drift.h"
#include "config/load.h"
#include "config/print.h"
#include "data/sample_source.h"
#include "interop/export_source.h"
#include "interop/weights_checkpoint.h"
#include "model/parameters.h"
#include "train/stages.h"

namespace tokamak {

namespace {

// Weights are comparable only in one function of one vocabulary. `of`: the checkpoint whose config the mean has.
void expect_same_model(const CheckpointReader& reader, const CheckpointReader& of) {
  const TrainingPoint &one = reader.manifest().point, &other = of.manifest().point;
  const auto refuse = [&](const auto&... what) {
    fail(Kind::kCheckpoint, str(reader.directory(), " holds another model than ", of.directory(), ": ", what...));
  };
  const RunConfig config = config_at_step(parse_saved_config(other.config, of.directory()), other.state.step);
  const std::string saved =
      print_config(config_at_step(parse_saved_config(one.config, reader.directory()), one.state.step));
  for (const ConfigChange& change : compare_configs(saved, config).refused) {
    if (starts_with(change.key, "model.")) refuse(change.key, " is ", change.was, ", not ", change.is);
  }
  const std::string tokenizer = tokenizer_in_state(one.data), expected = tokenizer_in_state(other.data);
  if (tokenizer != expected) refuse("its tokenizer is ", printable(tokenizer), ", not ", printable(expected));
}

}  // namespace

CheckpointManifest average_checkpoints(std::vector<CheckpointReader> checkpoints, const std::string& out,
                                       const Progress& progress) {
  const auto newest = std::max_element(checkpoints.begin(), checkpoints.end(), [](const auto& a, const auto& b) {
    return a.manifest().point.state.step < b.manifest().point.state.step;
  });
  TrainingPoint point = newest->manifest().point;
  point.state.optimizer_start = 0;
  point.state.averages.clear();
  const ParamTable table = make_param_table(parse_saved_config(point.config, newest->directory()).model);
  for (const CheckpointReader& one : checkpoints) {
    check_is_model(one, table);
    expect_same_model(one, *newest);
  }

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
