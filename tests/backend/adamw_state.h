// AdamW's tensors for tests: n random elements each, with moments in either dtype.
#pragma once

#include "support.h"

namespace tokamak::testing {

struct AdamWState {
  explicit AdamWState(int64_t n, DType moments = DType::kF32)
      : master(random_tensor(DType::kF32, {n}, "master")),
        exp_avg(random_tensor(moments, {n}, "exp_avg", 0.1)),
        exp_avg_sq(moments, {n}),
        grad(random_tensor(DType::kF32, {n}, "grad")),
        weights(DType::kBF16, {n}),
        control(DType::kF32, {kStepControls}, {1, 1, 0, 0, 0}) {
    Values v = random_tensor(DType::kF32, {n}, "exp_avg_sq", 0.1).values();
    for (double& x : v) x = x * x;
    exp_avg_sq.set(v);
  }
  AdamW args() const {
    AdamW a{master, exp_avg, exp_avg_sq, grad, weights, control};
    a.lr = 0.003;
    a.beta1 = 0.9;
    a.beta2 = 0.95;
    a.eps = 1e-8;
    a.groups = {{master.count(), 0.1}};
    a.bias1 = 1 - std::pow(0.9, 7);
    a.bias2 = 1 - std::pow(0.95, 7);
    a.rounding = {.seed = 42, .first = 0, .step = 7};
    return a;
  }
  // Elements [begin, end) alone.
  AdamW args_of(int64_t begin, int64_t end, double weight_decay = 0.1) const {
    AdamW a = args();
    for (Tensor* tensor : {&a.master, &a.exp_avg, &a.exp_avg_sq, &a.grad, &a.weights}) {
      *tensor = tensor->flat(begin, end);
    }
    a.groups = {{end - begin, weight_decay}};
    a.rounding.first += begin;
    return a;
  }
  std::string bytes() const { return master.bytes() + exp_avg.bytes() + exp_avg_sq.bytes() + weights.bytes(); }
  HostTensor master, exp_avg, exp_avg_sq, grad, weights, control;
};

}  // namespace tokamak::testing
