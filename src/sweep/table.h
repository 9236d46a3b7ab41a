// table.jsonl of a sweep: a line for each run, made from the records in the run's own directory. A number that is not
// known, as the loss of a run that has not validated yet, is null:
//   {"id":"lr=0.001_seed=1_53a1c2d4","overrides":{"optimizer.lr":"0.001"},"seed":1,"n_body":7700000,"n_head":1310720,
//    "n_total":10321920,"tokens":1638400,"flops_full":9.57e13,"batch_tokens":4096,"steps":400,"loss":4.44,
//    "loss_last3":4.46,"tokens_per_second":9800,"status":"done","exit_code":0,"error":"","program":"tokamak 0.1.0, ..."}
// flops_full counts mfu_full's FLOPs, 6 (N - N_embedding) + 12 L H T a token (model/flops.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "monitor/record.h"
#include "train/run_config.h"

namespace tokamak {

// A diverged run ended because its loss or gradients were not finite (exit code 7). Other errors are failures.
enum class SweepStatus { kWaiting, kRunning, kStopped, kDone, kDiverged, kFailed };
inline const std::vector<std::string>& enum_names(SweepStatus) {
  static const std::vector<std::string> names = {"waiting", "running", "stopped", "done", "diverged", "failed"};
  return names;
}

struct SweepRow {
  std::string id;
  std::vector<NamedText> overrides;  // without run.seed, by name
  int64_t seed = 0;
  int64_t body = 0;   // parameters of the layers and norms
  int64_t head = 0;   // of the head's matrix, tied or not
  int64_t total = 0;  // of the model; an embedding of its own is in no other count
  int64_t tokens = 0;
  double flops_full = 0;
  int64_t batch_tokens = 0;
  int64_t steps = 0;
  std::optional<double> loss, loss_last3;  // the last validation, and the mean of the last three
  std::optional<double> tokens_per_second;
  SweepStatus status = SweepStatus::kWaiting;
  int exit_code = 0;
  std::string error;    // of a failed or diverged run
  std::string program;  // that ran the latest start

  bool is_over() const { return status == SweepStatus::kDone || status == SweepStatus::kDiverged; }
};

// Fills in the sizes, the batch and the seed. model.vocab_size is known.
void describe_config(SweepRow& row, const RunConfig& config);

// Fills in what the run in `directory` has recorded; changes nothing if it has recorded no start.
void read_records_of_run(SweepRow& row, const std::string& directory);

std::vector<SweepRow> read_table(const std::string& path);  // empty if there is no file; Error(kConfig) names the line
void write_table(const std::string& path, const std::vector<SweepRow>& rows);

}  // namespace tokamak
