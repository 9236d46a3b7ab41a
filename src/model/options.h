// Which activations backward keeps, and which it recomputes.
#pragma once

#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

enum class RecomputeMode { kNone, kFull };
inline const std::vector<std::string>& enum_names(RecomputeMode) {
  static const std::vector<std::string> names = {"none", "full"};
  return names;
}

struct ActivationCheckpointOptions {
  RecomputeMode mode = RecomputeMode::kNone;

  template <class Visitor>
  void fields(Visitor& v) {
    v("mode", mode,
      "none: keep what backward needs (norms and SwiGLU are always recomputed); full: keep layer inputs only, which "
      "takes far less memory and about a third more FLOPs");
  }
};

}  // namespace tokamak
