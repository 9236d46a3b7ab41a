// The tensors that a call of attention hands to cuDNN: names, shapes and addresses, whoever builds the graph of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention_cudnn_graph.h"

namespace tokamak {

// cuDNN's "unique ids" of them.
enum CallTensor : int64_t { kQuery = 1, kKey, kValue, kOut, kStats, kScale, kDOut, kDQuery, kDKey, kDValue };

struct CallTensorShape {
  std::vector<int64_t> dims;  // (B, heads, T, D)
  std::vector<int64_t> strides;
  bool is_f32 = false;  // else bf16
};

// kScale is one number, given by value: its address is on the host.
CallTensorShape shape_of(const AttentionGraphSpec& spec, CallTensor tensor);

std::vector<std::pair<int64_t, void*>> addresses_of(const AttentionGraphSpec& spec, const AttentionPointers& pointers,
                                                    float* scale);

// One line of cuDNN's message, which may list what each of its engines had against the graph: the first and the last.
std::string one_line(std::string message);

}  // namespace tokamak
