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
      "none: keep all activations; full: keep only layer inputs, a third more FLOPs; selective: full plus "
      "kept_bytes; auto: the fastest predicted step that fits");
    v("kept_bytes", kept_bytes,
      "with selective, bytes of activations kept beyond full's; more memory, less recomputed; auto: what the device "
      "has left; none: as full");
    v("kept_layers", kept_layers,
      "with selective, layers that keep each of [qkv, attention, mid, gate_up, norm1, norm2, swiglu], as tokamak "
      "plan prints; replaces kept_bytes");
  }
};

}  // namespace tokamak
