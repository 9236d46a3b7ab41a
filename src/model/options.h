// Which activations backward keeps, and which it recomputes. All modes give the same bits.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class RecomputeMode { kNone, kFull, kSelective, kAuto };
inline const std::vector<std::string>& enum_names(RecomputeMode) {
  static const std::vector<std::string> names = {"none", "full", "selective", "auto"};
  return names;
}

struct ActivationCheckpointOptions {
  RecomputeMode mode = RecomputeMode::kNone;
  AutoLimit kept_bytes;
  std::vector<int64_t> kept_layers;

  template <class Visitor>
  void fields(Visitor& v) {
    v("mode", mode,
      "none: keep all that backward needs, with the outputs of norms and SwiGLU, which takes most memory; full: keep "
      "layer inputs only, which takes far less memory and about a third more FLOPs; selective: keep layer inputs and, "
      "within kept_bytes, the tensors that spare most FLOPs, then outputs of norms and SwiGLU; auto: keep, of each layer, "
      "the tensors that save most predicted time in the memory there is, chosen at each start together with "
      "training.micro_batch_size, parallelism.keep_gathered and parallelism.reduce where those are auto; of one micro-batch "
      "and one reduce, all give the same bits");
    v("kept_bytes", kept_bytes,
      "with selective, bytes of activations that a rank keeps beyond full's; more memory, less recomputed; auto: what "
      "the device has left once everything else is planned (where the device is the CPU, an eighth of its memory stays "
      "free), all of them in a plan without a limit; none: as full");
    v("kept_layers", kept_layers,
      "with selective, how many layers keep each tensor, [qkv, attention, mid, gate_up, norm1, norm2, swiglu] or the "
      "first four of these, each at most model.num_hidden_layers - 1, instead of what kept_bytes would choose; tokamak "
      "plan prints such lists");
  }
};

}  // namespace tokamak
