// The tensors that a call of attention hands to cuDNN: names, shapes and addresses, whoever builds the graph of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention/cudnn_graph.h"
#include "cuda/attention/ragged_tables.h"

namespace tokamak {

// cuDNN's "unique ids" of them. From kOffsets on: the offsets in each RaggedRows.
enum CallTensor : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kStats,
  kScale,
  kDOut,
  kDQuery,
  kDKey,
  kDValue,
  kQueryLengths,
  kKeyLengths,
  kOffsets
};
inline int64_t offsets_in(RaggedRows rows) { return int64_t{kOffsets} + int64_t{rows}; }
enum class CallType { kBF16, kF32, kI32, kI64 };

struct CallTensorShape {
  std::vector<int64_t> dims;  // (B, heads, T, D)
  std::vector<int64_t> strides;
  CallType type = CallType::kBF16;
};

// kScale is one number, given by value: its address is on the host.
CallTensorShape shape_of(const AttentionGraphSpec& spec, int64_t tensor);

// The tensor that says where in this one each document begins; nothing where strides say it.
std::optional<int64_t> offsets_of(const AttentionGraphSpec& spec, int64_t tensor);

std::vector<std::pair<int64_t, void*>> addresses_of(const AttentionGraphSpec& spec, const AttentionPointers& pointers,
                                                    float* scale);

// One line of cuDNN's message, which may list what each of its engines had against the graph: the first and the last.
std::string one_line(std::string message);

}  // namespace tokamak
