// A kind of layer for tests: attention, and a feed-forward with one more weight and one more activation. This
// file is its whole description.
//   out = x + swiglu((norm(x) We^T) Wgu^T) Wd^T
#pragma once

#include "base/strings.h"
#include "model/attention_part.h"
#include "model/linear.h"
#include "model/part.h"
#include "model/part_pass.h"

namespace tokamak {

class ToyPart final : public Part {
 public:
  explicit ToyPart(const ModelConfig& config)
      : config_(config),
        extra_{Linear({kExtraWeight, {}}, "extra", {"extra forward", "extra dx", "extra dw"},
                      {{"extra_proj", config.hidden_size}}, config.hidden_size),
               BranchBegin::Norm{kInputNorm, kRstd, kNorm, kKeepNorm, static_cast<float>(config.rms_norm_eps), 0}},
        gate_up_({kGateUpWeight, {}}, "gate_up", {"gate_up forward", "gate_up dx", "gate_up dw"},
                 {{"gate_proj", config.intermediate_size}, {"up_proj", config.intermediate_size}}, config.hidden_size),
        down_({kDownWeight, {}}, "down", {"down forward", "down dx", "down dw"}, {{"down_proj", config.hidden_size}},
              config.intermediate_size) {}

  std::vector<const char*> pieces() const override { return {"gate_up", "down"}; }

  std::vector<WeightRow> weights(int64_t layer) const override {
    const std::string prefix = str("model.layers.", layer, "."), mlp = prefix + "mlp.";
    const double std = config_.initializer_range;
    return {{kExtraWeight, WeightPlace::kMatrix, extra_.linear.weights(mlp, std), kGateUpPiece},
            {kGateUpWeight, WeightPlace::kMatrix, gate_up_.weights(mlp, std), kGateUpPiece},
            {kDownWeight, WeightPlace::kMatrix, down_.weights(mlp, std), kDownPiece},
            {kInputNorm, WeightPlace::kInputNorm,
             norm_weight(prefix + "post_attention_layernorm.weight", config_.hidden_size, 0)}};
  }

  std::vector<ActivationRow> activations(DType compute) const override {
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    return {{kRstd, "rstd2", DType::kF32, Layout::kPerToken, 1, Life::kKept, kKeepExtra},
            {kExtra, "extra", compute, Layout::kRows, hidden, Life::kKept, kKeepExtra},
            {kGateUp, "gate_up", compute, Layout::kRows, 2 * inner, Life::kKept, kKeepGateUp},
            {kNorm, "norm2", compute, Layout::kRows, hidden, Life::kKeptOrNorm, kKeepNorm},
            {kSwiGlu, "swiglu", compute, Layout::kRows, inner, Life::kKept, kKeepSwiGlu}};
  }

  std::vector<KeptRow> kept() const override {
    using enum KeptRow::Spares;
    return {{kKeepExtra, "extra", kForward, extra_.linear.flops(), 0, kGateUpPiece},
            {kKeepGateUp, "gate_up", kForward, gate_up_.flops(), 0, kGateUpPiece},
            {kKeepNorm, "norm2", kStore},
            {kKeepSwiGlu, "swiglu", kStore}};
  }

  void forward(const PartPass& pass) const override {
    if (pass.computes(kKeepExtra) || pass.computes(kKeepGateUp)) pass.use(kGateUpPiece);
    if (pass.computes(kKeepExtra)) extra_.forward(pass, pass.a(kExtra));
    if (pass.computes(kKeepGateUp)) gate_up_.forward(pass, pass.a(kExtra), pass.a(kGateUp));
    if (pass.recomputes()) return;
    pass.use(kDownPiece);
    pass.in.ops.swiglu(pass.in.compute, {.gate_up = pass.a(kGateUp), .out = pass.a(kSwiGlu)});
    down_.forward(pass, pass.a(kSwiGlu), pass.out, pass.x);
  }

  void backward(const PartPass& pass) const override {
    const Tensor gate_up = pass.a(kGateUp), swiglu = pass.a(kSwiGlu), extra = pass.a(kExtra);
    pass.begin(kDownPiece);
    down_.backward_in_place(pass, pass.in.dx, swiglu, kKeepSwiGlu, [&](Tensor recomputed) {
      pass.in.ops.swiglu_backward(pass.in.compute,
                                  {.gate_up = gate_up, .dout = swiglu, .dgate_up = gate_up, .out = recomputed});
    });
    pass.end(kDownPiece);
    pass.begin(kGateUpPiece);
    gate_up_.dw(pass, gate_up, extra);
    gate_up_.dx(pass, gate_up, extra);
    extra_.backward(pass, extra);
    pass.end(kGateUpPiece);
  }

 private:
  enum Piece { kGateUpPiece, kDownPiece };
  enum Weight { kExtraWeight, kGateUpWeight, kDownWeight, kInputNorm };
  enum Activation { kRstd, kExtra, kGateUp, kNorm, kSwiGlu };
  enum Kept { kKeepExtra, kKeepGateUp, kKeepNorm, kKeepSwiGlu };

  ModelConfig config_;
  BranchBegin extra_;
  Linear gate_up_, down_;
};

inline constexpr LayerKind kToyLayer = {"toy", [](const ModelConfig& config) {
                                          std::vector<std::unique_ptr<const Part>> parts;
                                          parts.push_back(std::make_unique<AttentionPart>(config));
                                          parts.push_back(std::make_unique<ToyPart>(config));
                                          return parts;
                                        }};

}  // namespace tokamak
