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
  std::vector<int64_t> kept_layers;  // not a key: the counts that mode: auto chose (train/auto_choice.h)

  template <class Visitor>
  void fields(Visitor& v) {
    v("mode", mode,
      "none: keep all activations; full: keep only layer inputs, a third more FLOPs; selective: full plus "
      "kept_bytes; auto: the fastest predicted step that fits");
    v("kept_bytes", kept_bytes,
      "with selective, bytes of activations kept beyond full's; more memory, less recomputed; auto: what the device "
      "has left; none: as full");
  }
};

}  // namespace tokamak
