// Options of a run's stages. A stage takes the keys that it leaves out from the run (kStageKeys).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/options.h"
#include "model/options.h"
#include "model/rope_scaling.h"
#include "optim/options.h"

namespace tokamak {

enum class StageSchedule { kRun, kStage };
inline const std::vector<std::string>& enum_names(StageSchedule) {
  static const std::vector<std::string> names = {"run", "stage"};
  return names;
}

// A batch or a length that doubles until it has its full size.
struct WarmupOptions {
  int64_t from = 0;
  int64_t over = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("from", from, "value that the run begins with, the full one divided by a power of two; 0: no warm-up");
    v("over", over, "tokens until it has its full value; each doubling before that lasts an equal share");
  }
};

struct StageOptions {
  std::string name;
  int64_t steps = 0;
  int64_t tokens = 0;
  int64_t sequence_length = 0;
  int64_t global_batch_tokens = 0;
  AutoInt micro_batch_size;
  std::vector<SourceOptions> sources;
  bool document_masking = true;
  double rope_theta = 0;
  RopeScaling rope_scaling;
  double weight_decay = 0;
  StageSchedule schedule = StageSchedule::kRun;
  double lr = 0;
  ScheduleOptions lr_scheduler;
  ActivationCheckpointOptions activation_checkpoint;

  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "a word, in the log and the report; required");
    v("steps", steps, "optimizer steps of the stage; give either steps or tokens");
    v("tokens", tokens, "tokens to train on in the stage, rounded up to whole steps");
    v("sequence_length", sequence_length, "as data.sequence_length; it divides the longest one of all stages");
    v("global_batch_tokens", global_batch_tokens, "as training.global_batch_tokens");
    v("micro_batch_size", micro_batch_size, "as training.micro_batch_size");
    v("sources", sources,
      "as data.sources; a source goes on where the stage before left it, so it repeats only when all of it was read");
    v("document_masking", document_masking, "as data.document_masking");
    v("rope_theta", rope_theta, "as model.rope_theta; a longer context needs a larger base, or rope_scaling");
    v("rope_scaling", rope_scaling, "as model.rope_scaling");
    v("weight_decay", weight_decay, "as optimizer.weight_decay");
    v("schedule", schedule,
      "run: the run's lr_scheduler spans this stage too; stage: the stage has its own lr and lr_scheduler, from its "
      "first step to its last");
    v("lr", lr, "as optimizer.lr, with schedule: stage");
    v("lr_scheduler", lr_scheduler, "as lr_scheduler, with schedule: stage; shares are those of the stage");
    v("activation_checkpoint", activation_checkpoint, "as activation_checkpoint");
  }
};

// A key of a stage, and the key of the run whose value it takes if it is left out.
struct StageKey {
  const char* stage;
  const char* run;
};
inline constexpr StageKey kStageKeys[] = {
    {"sequence_length", "data.sequence_length"},
    {"global_batch_tokens", "training.global_batch_tokens"},
    {"micro_batch_size", "training.micro_batch_size"},
    {"sources", "data.sources"},
    {"document_masking", "data.document_masking"},
    {"rope_theta", "model.rope_theta"},
    {"rope_scaling", "model.rope_scaling"},
    {"weight_decay", "optimizer.weight_decay"},
    {"lr", "optimizer.lr"},
    {"lr_scheduler", "lr_scheduler"},
    {"activation_checkpoint", "activation_checkpoint"},
};

}  // namespace tokamak
