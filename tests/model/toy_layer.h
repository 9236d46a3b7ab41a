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
        extra_("extra", {"extra forward", "extra dx", "extra dw"}, {{"extra_proj", config.hidden_size}},
               config.hidden_size),
        gate_up_("gate_up", {"gate_up forward", "gate_up dx", "gate_up dw"},
                 {{"gate_proj", config.intermediate_size}, {"up_proj", config.intermediate_size}}, config.hidden_size),
        down_("down", {"down forward", "down dx", "down dw"}, {{"down_proj", config.hidden_size}},
              config.intermediate_size) {}

  std::vector<const char*> pieces() const override { return {"gate_up", "down"}; }

  std::vector<WeightRow> weights(int64_t layer) const override {
    const std::string prefix = str("model.layers.", layer, "."), mlp = prefix + "mlp.";
    const double std = config_.initializer_range;
    return {{kExtraWeight, WeightPlace::kMatrix, extra_.weights(mlp, std), kGateUpPiece},
            {kGateUpWeight, WeightPlace::kMatrix, gate_up_.weights(mlp, std), kGateUpPiece},
            {kDownWeight, WeightPlace::kMatrix, down_.weights(mlp, std), kDownPiece},
            {kInputNorm, WeightPlace::kInputNorm,
             norm_weight(prefix + "post_attention_layernorm.weight", config_.hidden_size)}};
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
    return {{kKeepExtra, "extra", kForward, extra_.flops(), 0, kGateUpPiece},
            {kKeepGateUp, "gate_up", kForward, gate_up_.flops(), 0, kGateUpPiece},
            {kKeepNorm, "norm2", kStore},
            {kKeepSwiGlu, "swiglu", kStore}};
  }

  void forward(const PartPass& pass) const override {
    Ops& ops = pass.in.ops;
    Stream& compute = pass.in.compute;
    if (pass.wants(kKeepExtra) || pass.wants(kKeepGateUp)) pass.use(kGateUpPiece);
    if (pass.wants(kKeepExtra)) {
      ops.rmsnorm(compute, {.x = pass.x,
                            .weight = pass.w(kInputNorm),
                            .y = pass.a(kNorm),
                            .rstd = pass.a(kRstd),
                            .eps = static_cast<float>(config_.rms_norm_eps)});
      ops.gemm(compute, extra_.forward(pass.a(kNorm), pass.w(kExtraWeight), pass.a(kExtra)));
    }
    if (pass.wants(kKeepGateUp)) {
      ops.gemm(compute, gate_up_.forward(pass.a(kExtra), pass.w(kGateUpWeight), pass.a(kGateUp)));
    }
    if (pass.recomputes()) return;
    pass.use(kDownPiece);
    ops.swiglu(compute, {.gate_up = pass.a(kGateUp), .out = pass.a(kSwiGlu)});
    ops.gemm(compute, down_.forward_onto(pass.x, pass.a(kSwiGlu), pass.w(kDownWeight), pass.out));
  }

  void backward(const PartPass& pass) const override {
    Ops& ops = pass.in.ops;
    Stream& compute = pass.in.compute;
    const Tensor dx = pass.in.dx, gate_up = pass.a(kGateUp), swiglu = pass.a(kSwiGlu), extra = pass.a(kExtra),
                 norm = pass.a(kNorm);
    pass.begin(kDownPiece);
    const auto down_dw = [&] { ops.gemm(compute, down_.dw(dx, swiglu, pass.dw(kDownWeight), pass.write())); };
    const bool swiglu_again = pass.again(kKeepSwiGlu);
    if (!swiglu_again) down_dw();
    ops.gemm(compute, down_.dx(dx, pass.w(kDownWeight), swiglu));
    ops.swiglu_backward(
        compute, {.gate_up = gate_up, .dout = swiglu, .dgate_up = gate_up, .out = swiglu_again ? swiglu : Tensor{}});
    if (swiglu_again) down_dw();
    pass.end(kDownPiece);

    pass.begin(kGateUpPiece);
    ops.gemm(compute, gate_up_.dw(gate_up, extra, pass.dw(kGateUpWeight), pass.write()));
    ops.gemm(compute, gate_up_.dx(gate_up, pass.w(kGateUpWeight), extra));
    const auto extra_dw = [&] { ops.gemm(compute, extra_.dw(extra, norm, pass.dw(kExtraWeight), pass.write())); };
    const bool norm_again = pass.again(kKeepNorm);
    if (!norm_again) extra_dw();
    ops.gemm(compute, extra_.dx(extra, pass.w(kExtraWeight), norm));
    ops.rmsnorm_backward(compute, {.dy = norm,
                                   .x = pass.x,
                                   .weight = pass.w(kInputNorm),
                                   .rstd = pass.a(kRstd),
                                   .dresidual = dx,
                                   .dx = dx,
                                   .dweight = pass.dw(kInputNorm),
                                   .y = norm_again ? norm : Tensor{}});
    if (norm_again) extra_dw();
    pass.end(kGateUpPiece);
  }

 private:
  enum Piece { kGateUpPiece, kDownPiece };
  enum Weight { kExtraWeight, kGateUpWeight, kDownWeight, kInputNorm };
  enum Activation { kRstd, kExtra, kGateUp, kNorm, kSwiGlu };
  enum Kept { kKeepExtra, kKeepGateUp, kKeepNorm, kKeepSwiGlu };

  ModelConfig config_;
  Linear extra_, gate_up_, down_;
};

inline constexpr LayerKind kToyLayer = {"toy", [](const ModelConfig& config) {
                                          std::vector<std::unique_ptr<const Part>> parts;
                                          parts.push_back(std::make_unique<AttentionPart>(config));
                                          parts.push_back(std::make_unique<ToyPart>(config));
                                          return parts;
                                        }};

}  // namespace tokamak
