// Which activations backward keeps, and which it recomputes. All modes give the same bits.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class RecomputeMode { kNone, kFull, kSelective };
inline const std::vector<std::string>& enum_names(RecomputeMode) {
  static const std::vector<std::string> names = {"none", "full", "selective"};
  return names;
}

struct ActivationCheckpointOptions {
  RecomputeMode mode = RecomputeMode::kNone;
  AutoLimit kept_bytes;

  template <class Visitor>
  void fields(Visitor& v) {
    v("mode", mode,
      "none: keep what backward needs (norms and SwiGLU are always recomputed); full: keep layer inputs only, which "
      "takes far less memory and about a third more FLOPs; selective: keep layer inputs and, within kept_bytes, the "
      "tensors that spare most FLOPs; all give the same bits");
    v("kept_bytes", kept_bytes,
      "with selective, bytes of activations that a rank keeps beyond full's; more memory, less recomputed; auto: what "
      "the device has left once everything else is planned (where the device is the CPU, an eighth of its memory stays "
      "free), all of them in a plan without a limit; none: as full");
  }
};

}  // namespace tokamak
