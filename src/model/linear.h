// A weight matrix (out, in), as Hugging Face stores it: its row of the weight table, its FLOPs and its three GEMMs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "tensor/param_table.h"

namespace tokamak {

// The GEMMs' names in profiles and traces. They are literals, because records outlive a model.
struct GemmLabels {
  const char* forward;
  const char* dx;
  const char* dw;
};

class Linear {
 public:
  struct Rows {
    std::string name;  // "q_proj"
    int64_t count;
  };
  // `outputs`: the named weights that the matrix stacks by rows.
  Linear(std::string name, GemmLabels labels, std::vector<Rows> outputs, int64_t columns)
      : name_(std::move(name)), labels_(labels), outputs_(std::move(outputs)), columns_(columns) {}

  // y = x w^T
  Gemm forward(Tensor x, Tensor w, Tensor y) const {
    return {.a = x, .b = w, .c = y, .trans_b = Transpose::kYes, .label = labels_.forward};
  }
  // y = residual + x w^T
  Gemm forward_onto(Tensor residual, Tensor x, Tensor w, Tensor y) const {
    return {.a = x, .b = w, .c = y, .residual = residual, .trans_b = Transpose::kYes, .label = labels_.forward};
  }
  // dx = dy w
  Gemm dx(Tensor dy, Tensor w, Tensor dx) const { return {.a = dy, .b = w, .c = dx, .label = labels_.dx}; }
  // dw (+)= dy^T x
  Gemm dw(Tensor dy, Tensor x, Tensor dw, Write write) const {
    return {.a = dy, .b = x, .c = dw, .trans_a = Transpose::kYes, .write = write, .label = labels_.dw};
  }

  // The weights `prefix`q_proj.weight, ..., initialised from normal(0, std).
  Matrix weights(const std::string& prefix, double std) const;
  // Their biases: one vector without weight decay.
  Matrix biases(const std::string& prefix) const;
  double flops() const;  // of forward(), per token

 private:
  std::string name_;
  GemmLabels labels_;
  std::vector<Rows> outputs_;
  int64_t columns_;
};

}  // namespace tokamak
