#include "train/auto_choice.h"

#include "base/strings.h"

namespace tokamak {

bool leaves_choice(const RunConfig& config) {
  return config.activation_checkpoint.mode == RecomputeMode::kAuto || config.parallelism.keep_gathered.is_auto();
}

RunConfig with_choice(RunConfig config, const AutoChoice& choice) {
  if (config.activation_checkpoint.mode == RecomputeMode::kAuto) {
    config.activation_checkpoint.mode = RecomputeMode::kSelective;
    config.activation_checkpoint.kept_layers = counts_of(config.model, choice.kept);
  }
  if (config.parallelism.keep_gathered.is_auto()) config.parallelism.keep_gathered = {choice.keep_gathered};
  if (config.parallelism.reduce == ReduceWhen::kAuto && choice.reduce_once) {
    config.parallelism.reduce = ReduceWhen::kLastMicrobatch;
  }
  if (config.training.micro_batch_size.is_auto()) config.training.micro_batch_size = {choice.micro_batch};
  return config;
}

RunConfig without_choice(RunConfig config) {
  if (config.activation_checkpoint.mode == RecomputeMode::kAuto) {
    config.activation_checkpoint.mode = RecomputeMode::kNone;
  }
  if (config.parallelism.keep_gathered.is_auto()) config.parallelism.keep_gathered = AutoLimit::none();
  return config;
}

AutoChoice least_choice(const RunConfig& config) {
  const AutoInt size = config.training.micro_batch_size;
  return {.micro_batch = size.is_auto() ? 1 : size.value};
}

std::string text_of(const RunConfig& config, const AutoChoice& choice) {
  std::vector<std::string> parts;
  if (config.training.micro_batch_size.is_auto()) {
    parts.push_back(str("training.micro_batch_size ", choice.micro_batch));
  }
  if (config.parallelism.keep_gathered.is_auto()) {
    parts.push_back(str("parallelism.keep_gathered ", choice.keep_gathered));
  }
  if (config.parallelism.reduce == ReduceWhen::kAuto && choice.reduce_once) {
    parts.push_back("parallelism.reduce last_microbatch");
  }
  if (config.activation_checkpoint.mode == RecomputeMode::kAuto) {
    parts.push_back(str("keeping ", kept_text(config.model, choice.kept)));
  }
  return join(parts, ", ");
}

}  // namespace tokamak
