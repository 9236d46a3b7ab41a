#include "model/mlp_part.h"

#include "base/strings.h"
#include "model/part_pass.h"

namespace tokamak {

MlpPart::MlpPart(const ModelConfig& config)
    : config_(config),
      gate_up_{
          Linear({kGateUpWeight, id_if(config.mlp_bias, kGateUpBias)}, "gate_up",
                 {"gate_up forward", "gate_up dx", "gate_up dw"},
                 {{"gate_proj", config.intermediate_size}, {"up_proj", config.intermediate_size}}, config.hidden_size),
          {},
          kDBranch},
      down_{Linear({kDownWeight, id_if(config.mlp_bias, kDownBias)}, "down", {"down forward", "down dx", "down dw"},
                   {{"down_proj", config.hidden_size}}, config.intermediate_size),
            {},
            kDBranch} {
  const auto eps = static_cast<float>(config.rms_norm_eps);
  if (config.has_pre_norms()) gate_up_.norm = {kInputNorm, kRstd, kNorm, kKeepNorm, eps, config.norm_offset()};
  if (config.has_post_norms()) down_.norm = {kOutputNorm, kDown, kDownRstd, kKeepDown, eps, config.norm_offset()};
}

std::vector<WeightRow> MlpPart::weights(int64_t layer) const {
  const std::string prefix = str("model.layers.", layer, "."), mlp = prefix + "mlp.";
  std::vector<WeightRow> rows = {
      {kGateUpWeight, WeightPlace::kMatrix, gate_up_.linear.weights(mlp, config_.initializer_range), kGateUpPiece},
      {kDownWeight, WeightPlace::kMatrix, down_.linear.weights(mlp, config_.output_range()), kDownPiece}};
  const auto add_norm = [&](int id, WeightPlace place, const char* name) {
    rows.push_back({id, place, norm_weight(prefix + name, config_.hidden_size, config_.norm_offset())});
  };
  // Hugging Face's names: with norms before and after, "post attention" is the one that ends attention.
  if (gate_up_.norm) {
    add_norm(kInputNorm, WeightPlace::kInputNorm,
             down_.norm ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight");
  }
  if (config_.mlp_bias) {
    rows.push_back({kGateUpBias, WeightPlace::kVector, gate_up_.linear.biases(mlp)});
    rows.push_back({kDownBias, WeightPlace::kVector, down_.linear.biases(mlp)});
  }
  if (down_.norm) add_norm(kOutputNorm, WeightPlace::kVector, "post_feedforward_layernorm.weight");
  return rows;
}

std::vector<ActivationRow> MlpPart::activations(DType compute) const {
  const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
  std::vector<ActivationRow> rows = {{kGateUp, "gate_up", compute, Layout::kRows, 2 * inner, Life::kKept, kKeepGateUp},
                                     {kSwiGlu, "swiglu", compute, Layout::kRows, inner, Life::kKept, kKeepSwiGlu}};
  if (gate_up_.norm) {
    rows.push_back({kRstd, "rstd2", DType::kF32, Layout::kPerToken, 1, Life::kKept, kKeepGateUp});
    rows.push_back({kNorm, "norm2", compute, Layout::kRows, hidden, Life::kKeptOrNorm, kKeepNorm});
  }
  if (down_.norm) {
    rows.push_back({kDown, "down", compute, Layout::kRows, hidden, Life::kKept, kKeepDown});
    rows.push_back({kDownRstd, "rstd of down", DType::kF32, Layout::kPerToken, 1, Life::kKept, kKeepDown});
    rows.push_back({kDBranch, "d branch", compute, Layout::kRows, hidden, Life::kBackward});
  }
  return rows;
}

std::vector<KeptRow> MlpPart::kept() const {
  using enum KeptRow::Spares;
  std::vector<KeptRow> rows = {{kKeepGateUp, "gate_up", kForward, gate_up_.linear.flops(), {}, kGateUpPiece}};
  if (down_.norm) rows.push_back({kKeepDown, "down", kForward, down_.linear.flops(), {}, kDownPiece});
  if (gate_up_.norm) rows.push_back({kKeepNorm, "norm2", kStore});
  rows.push_back({kKeepSwiGlu, "swiglu", kStore});
  return rows;
}

void MlpPart::forward(const PartPass& pass) const {
  if (pass.computes(kKeepGateUp)) {
    pass.use(kGateUpPiece);
    gate_up_.forward(pass, pass.a(kGateUp));
  }
  // Backward needs no output. It needs the branch for the norm's gradient.
  if (pass.recomputes() && !(down_.norm && pass.computes(kKeepDown))) return;
  pass.use(kDownPiece);
  pass.in.ops.swiglu(pass.in.compute, {.gate_up = pass.a(kGateUp), .out = pass.a(kSwiGlu), .gate = gate()});
  down_.forward(pass, pass.a(kSwiGlu));
}

void MlpPart::backward(const PartPass& pass) const {
  const Tensor gate_up = pass.a(kGateUp), swiglu = pass.a(kSwiGlu);
  pass.begin(kDownPiece);
  down_.linear.backward_in_place(pass, down_.gradient(pass), swiglu, kKeepSwiGlu, [&](Tensor recomputed) {
    pass.in.ops.swiglu_backward(
        pass.in.compute, {.gate_up = gate_up, .dout = swiglu, .dgate_up = gate_up, .out = recomputed, .gate = gate()});
  });
  pass.end(kDownPiece);
  pass.begin(kGateUpPiece);
  gate_up_.backward(pass, gate_up);
  pass.end(kGateUpPiece);
}

}  // namespace tokamak
