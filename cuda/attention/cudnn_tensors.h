// The tensors that an attention call passes to cuDNN: names, shapes and addresses, independent of the graph builder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/document_tables.h"
#include "cuda/attention/cudnn_graph.h"

namespace tokamak {

// cuDNN's "unique ids" of the tensors. From kOffsets on: each of DocumentTables::Offsets.
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
inline int64_t offsets_in(DocumentTables::Offsets rows) { return int64_t{kOffsets} + int64_t{rows}; }
enum class CallType { kBF16, kF32, kI32, kI64 };

struct CallTensorShape {
  std::vector<int64_t> dims;  // (B, heads, T, D)
  std::vector<int64_t> strides;
  CallType type = CallType::kBF16;
};

// kScale is a scalar passed by value: its address is on the host.
CallTensorShape shape_of(const AttentionGraphSpec& spec, int64_t tensor);

// The tensor with each document's offset in this one; nullopt if strides suffice.
std::optional<int64_t> offsets_of(const AttentionGraphSpec& spec, int64_t tensor);

std::vector<std::pair<int64_t, void*>> addresses_of(const AttentionGraphSpec& spec, const AttentionPointers& pointers,
                                                    float* scale);

// cuDNN's message, which may list the objections of all its engines, as one line: the first and the last.
std::string one_line(std::string message);

}  // namespace tokamak
