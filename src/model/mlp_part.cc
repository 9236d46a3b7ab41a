#include "model/mlp_part.h"

#include "base/strings.h"
#include "model/part_pass.h"

namespace tokamak {

MlpPart::MlpPart(const ModelConfig& config)
    : config_(config),
      eps_(static_cast<float>(config.rms_norm_eps)),
      gate_up_("gate_up", {"gate_up forward", "gate_up dx", "gate_up dw"},
               {{"gate_proj", config.intermediate_size}, {"up_proj", config.intermediate_size}}, config.hidden_size),
      down_("down", {"down forward", "down dx", "down dw"}, {{"down_proj", config.hidden_size}},
            config.intermediate_size) {}

std::vector<WeightRow> MlpPart::weights(int64_t layer) const {
  const std::string prefix = str("model.layers.", layer, "."), mlp = prefix + "mlp.";
  return {{kGateUpWeight, WeightPlace::kMatrix, gate_up_.weights(mlp, config_.initializer_range), kGateUpPiece},
          {kDownWeight, WeightPlace::kMatrix, down_.weights(mlp, config_.initializer_range), kDownPiece},
          {kInputNorm, WeightPlace::kInputNorm,
           norm_weight(prefix + "post_attention_layernorm.weight", config_.hidden_size)}};
}

std::vector<ActivationRow> MlpPart::activations(DType compute) const {
  const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
  return {{kRstd, "rstd2", DType::kF32, Layout::kPerToken, 1, Life::kKept, kKeepGateUp},
          {kGateUp, "gate_up", compute, Layout::kRows, 2 * inner, Life::kKept, kKeepGateUp},
          {kNorm, "norm2", compute, Layout::kRows, hidden, Life::kKeptOrNorm, kKeepNorm},
          {kSwiGlu, "swiglu", compute, Layout::kRows, inner, Life::kKept, kKeepSwiGlu}};
}

std::vector<KeptRow> MlpPart::kept() const {
  using enum KeptRow::Spares;
  return {{kKeepGateUp, "gate_up", kForward, gate_up_.flops(), 0, kGateUpPiece},
          {kKeepNorm, "norm2", kStore},
          {kKeepSwiGlu, "swiglu", kStore}};
}

void MlpPart::forward(const PartPass& pass) const {
  Ops& ops = pass.in.ops;
  Stream& compute = pass.in.compute;
  if (pass.wants(kKeepGateUp)) {
    pass.use(kGateUpPiece);
    ops.rmsnorm(compute,
                {.x = pass.x, .weight = pass.w(kInputNorm), .y = pass.a(kNorm), .rstd = pass.a(kRstd), .eps = eps_});
    ops.gemm(compute, gate_up_.forward(pass.a(kNorm), pass.w(kGateUpWeight), pass.a(kGateUp)));
  }
  if (pass.recomputes()) return;  // backward needs no output
  pass.use(kDownPiece);
  ops.swiglu(compute, {.gate_up = pass.a(kGateUp), .out = pass.a(kSwiGlu)});
  ops.gemm(compute, down_.forward_onto(pass.x, pass.a(kSwiGlu), pass.w(kDownWeight), pass.out));
}

// Buffers are shared as in AttentionPart::backward.
void MlpPart::backward(const PartPass& pass) const {
  pass.begin(kDownPiece);
  backward_down(pass);
  pass.end(kDownPiece);
  pass.begin(kGateUpPiece);
  backward_gate_up(pass);
  pass.end(kGateUpPiece);
}

// On return kGateUp is its own gradient.
void MlpPart::backward_down(const PartPass& pass) const {
  Ops& ops = pass.in.ops;
  Stream& compute = pass.in.compute;
  const Tensor dx = pass.in.dx, gate_up = pass.a(kGateUp), swiglu = pass.a(kSwiGlu);
  const bool again = pass.again(kKeepSwiGlu);
  const auto down_dw = [&] { ops.gemm(compute, down_.dw(dx, swiglu, pass.dw(kDownWeight), pass.write())); };

  if (!again) down_dw();
  ops.gemm(compute, down_.dx(dx, pass.w(kDownWeight), swiglu));
  ops.swiglu_backward(compute,
                      {.gate_up = gate_up, .dout = swiglu, .dgate_up = gate_up, .out = again ? swiglu : Tensor{}});
  if (again) down_dw();
}

void MlpPart::backward_gate_up(const PartPass& pass) const {
  Ops& ops = pass.in.ops;
  Stream& compute = pass.in.compute;
  const Tensor dx = pass.in.dx, dgate_up = pass.a(kGateUp), norm = pass.a(kNorm);
  const bool again = pass.again(kKeepNorm);
  const auto gate_up_dw = [&] { ops.gemm(compute, gate_up_.dw(dgate_up, norm, pass.dw(kGateUpWeight), pass.write())); };

  if (!again) gate_up_dw();
  ops.gemm(compute, gate_up_.dx(dgate_up, pass.w(kGateUpWeight), norm));
  ops.rmsnorm_backward(compute, {.dy = norm,
                                 .x = pass.x,
                                 .weight = pass.w(kInputNorm),
                                 .rstd = pass.a(kRstd),
                                 .dresidual = dx,
                                 .dx = dx,
                                 .dweight = pass.dw(kInputNorm),
                                 .y = again ? norm : Tensor{}});
  if (again) gate_up_dw();
}

}  // namespace tokamak
