// A weight matrix (out, in), as Hugging Face stores it, and its bias: their rows of the weight table, the FLOPs and the
// three GEMMs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/part_pass.h"
#include "tensor/param_table.h"

namespace tokamak {

// The GEMMs' names in profiles and traces. They are string literals, because profiles outlive a model.
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
  // WeightRow::id of the matrix and of its bias, if it has one.
  struct Ids {
    int matrix;
    std::optional<int> bias;
  };
  // `outputs`: the named weights that the matrix stacks by rows.
  Linear(Ids ids, std::string name, GemmLabels labels, std::vector<Rows> outputs, int64_t columns)
      : ids_(ids), name_(std::move(name)), labels_(labels), outputs_(std::move(outputs)), columns_(columns) {}

  bool has_bias() const { return ids_.bias.has_value(); }
  // y = x w^T [+ bias] [+ residual]
  void forward(const PartPass& pass, Tensor x, Tensor y, Tensor residual = {}) const;
  // dx = dy w [+ residual]
  void dx(const PartPass& pass, Tensor dy, Tensor dx, Tensor residual = {}) const;
  // dw (+)= dy^T x, and the bias's gradient
  void dw(const PartPass& pass, Tensor dy, Tensor x) const;

  // Computes dw, and writes dx over x. If the layer keeps x (`kept_id`: KeptRow::id), dw comes first, and consume_dx
  // gets an empty tensor. Otherwise consume_dx(x), the operation that reads dx, replaces it by the recomputed x in the
  // same pass over memory. Then dw follows.
  template <class ConsumeDx>
  void backward_in_place(const PartPass& pass, Tensor dy, Tensor x, int kept_id, const ConsumeDx& consume_dx) const {
    const bool kept = pass.is_kept(kept_id);
    if (kept) dw(pass, dy, x);
    dx(pass, dy, x);
    consume_dx(kept ? Tensor() : x);
    if (!kept) dw(pass, dy, x);
  }

  // The weights `prefix`q_proj.weight, ..., initialised from normal(0, std).
  Matrix weights(const std::string& prefix, double std) const;
  // The biases of these weights, as one vector without weight decay.
  Matrix biases(const std::string& prefix) const;
  double flops() const;  // of forward(), per token

 private:
  Ids ids_;
  std::string name_;
  GemmLabels labels_;
  std::vector<Rows> outputs_;
  int64_t columns_;
};

inline std::optional<int> id_if(bool exists, int id) { return exists ? std::optional(id) : std::nullopt; }

// The first matrix of a part: y = norm(x) w^T, x being the residual stream; without a norm, x w^T.
struct BranchBegin {
  // The part's row ids.
  struct Norm {
    int weight;        // WeightRow
    int rstd, output;  // ActivationRow: (N) f32; (N, C), in backward its gradient
    int kept;          // KeptRow of the output
    float eps, offset;
  };
  Linear linear;
  std::optional<Norm> norm;
  int dbranch = -1;  // ActivationRow (N, C), used without a norm

  void forward(const PartPass& pass, Tensor y) const;
  void backward(const PartPass& pass, Tensor dy) const;  // adds to pass.in.dx
};

// The last matrix of a part, whose result joins the residual stream: out = x + norm(a w^T); without a norm, x + a w^T.
struct BranchEnd {
  struct Norm {
    int weight;        // WeightRow
    int branch, rstd;  // ActivationRow: a w^T (N, C); (N) f32
    int kept;          // KeptRow of both
    float eps, offset;
  };
  Linear linear;
  std::optional<Norm> norm;
  int dbranch = -1;  // ActivationRow (N, C), used with a norm

  // In a recomputation, with a norm: the branch if it is not kept, and `out`.
  void forward(const PartPass& pass, Tensor a) const;
  // The gradient of a w^T, of pass.in.dx, the gradient of `out`.                                     (N, C)
  Tensor gradient(const PartPass& pass) const;
};

}  // namespace tokamak
