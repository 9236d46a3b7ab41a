// The tensors that a decoder layer may keep, by their index in kept_tensors(). tests/model/layer_table_test.cc checks
// that the program lists them so.
#pragma once

#include <cstddef>

#include "model/recompute.h"

namespace tokamak {

enum DecoderKept : size_t { kQkv, kAttention, kMid, kGateUp, kNorm1, kNorm2, kSwiGlu, kDecoderKept };
inline constexpr const char* kDecoderKeptNames[] = {"qkv", "attention", "mid", "gate_up", "norm1", "norm2", "swiglu"};

// KeptLayers in which `layers` layers keep each tensor.
inline KeptLayers kept_in(int64_t layers) {
  KeptLayers kept;
  for (size_t i = 0; i < kDecoderKept; ++i) kept[i] = layers;
  return kept;
}

}  // namespace tokamak
