#include "model/mlp_part.h"

#include "base/strings.h"
#include "model/part_pass.h"

namespace tokamak {

MlpPart::MlpPart(const ModelConfig& config)
    : config_(config),
      gate_up_{
          Linear(kGateUpWeight, "gate_up", {"gate_up forward", "gate_up dx", "gate_up dw"},
                 {{"gate_proj", config.intermediate_size}, {"up_proj", config.intermediate_size}}, config.hidden_size),
          {.weight = kInputNorm, .rstd = kRstd, .output = kNorm, .kept = kKeepNorm, .eps = config.rms_norm_eps}},
      down_(kDownWeight, "down", {"down forward", "down dx", "down dw"}, {{"down_proj", config.hidden_size}},
            config.intermediate_size) {}

std::vector<WeightRow> MlpPart::weights(int64_t layer) const {
  const std::string prefix = str("model.layers.", layer, "."), mlp = prefix + "mlp.";
  return {{kGateUpWeight, WeightPlace::kMatrix, gate_up_.linear.weights(mlp, config_.initializer_range), kGateUpPiece},
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
  return {{kKeepGateUp, "gate_up", kForward, gate_up_.linear.flops(), {}, kGateUpPiece},
          {kKeepNorm, "norm2", kStore},
          {kKeepSwiGlu, "swiglu", kStore}};
}

void MlpPart::forward(const PartPass& pass) const {
  if (pass.computes(kKeepGateUp)) {
    pass.use(kGateUpPiece);
    gate_up_.forward(pass, pass.a(kGateUp));
  }
  if (pass.recomputes()) return;  // backward needs no output
  pass.use(kDownPiece);
  pass.in.ops.swiglu(pass.in.compute, {.gate_up = pass.a(kGateUp), .out = pass.a(kSwiGlu)});
  down_.forward(pass, pass.a(kSwiGlu), pass.out, {.residual = pass.x});
}

void MlpPart::backward(const PartPass& pass) const {
  const Tensor gate_up = pass.a(kGateUp), swiglu = pass.a(kSwiGlu);
  pass.begin(kDownPiece);
  down_.backward_in_place(pass, pass.in.dx, swiglu, kKeepSwiGlu, [&](Tensor recomputed) {
    pass.in.ops.swiglu_backward(pass.in.compute,
                                {.gate_up = gate_up, .dout = swiglu, .dgate_up = gate_up, .out = recomputed});
  });
  pass.end(kDownPiece);
  pass.begin(kGateUpPiece);
  gate_up_.backward(pass, gate_up);
  pass.end(kGateUpPiece);
}

}  // namespace tokamak
