// Attention: out = x + attention(rope(norm(x) Wqkv^T)) Wo^T. With qkv_bias, a bias is
// added to norm(x) Wqkv^T. With qk_norm, each query and key head is normalised before RoPE. Kinds of layers differ in
// the window and in whether there is a RoPE.
#pragma once

#include "model/linear.h"
#include "model/model_config.h"
#include "model/part.h"

namespace tokamak {

enum class Positions { kRotary, kNone };
struct LayerAttention {
  LayerType type = LayerType::kFull;
  Positions positions = Positions::kRotary;
};

class AttentionPart final : public Part {
 public:
  explicit AttentionPart(const ModelConfig& config, LayerAttention kind = {});

  std::vector<const char*> pieces() const override { return {"attention"}; }
  std::vector<WeightRow> weights(int64_t layer) const override;
  std::vector<ActivationRow> activations(DType compute) const override;
  std::vector<KeptRow> kept() const override;
  // The log-sum-exp is above the greatest logit by at most log(length): what QK-clip watches (Kimi K2, 2507.20534).
  std::vector<WatchedRow> watched() const override { return {{kAttn, "attention"}, {kLse, "attention_logits"}}; }
  AttentionFlops attention_flops() const override { return {4.0 * double(heads_.q_width()), window_}; }
  void widen(Workload& largest) const override;
  void forward(const PartPass& pass) const override;
  void backward(const PartPass& pass) const override;

 private:
  enum Weight { kQkvWeight, kOWeight, kInputNorm, kQkvBias, kQNorm, kKNorm };
  enum Activation {
    kRstd,     // (N)
    kQkv,      // (N, (Hq + 2 Hkv) D)  rotated; the raw projection if kRotated exists
    kLse,      // (Hq, N)
    kAttn,     // (N, Hq D)
    kMid,      // (N, C)               the part's output
    kNorm,     // (N, C)               input of the QKV GEMM
    kDQkv,     // (N, (Hq + 2 Hkv) D)
    kDAttn,    // (N, Hq D)
    kRotated,  // (N, (Hq + 2 Hkv) D)  with qk_norm: qkv normalised and rotated; inference overwrites kQkv instead
    kQkRstd,   // (N (Hq + Hkv))       only with qk_norm: (N, Hq) of the query heads, then (N, Hkv) of the key heads
  };
  enum Kept { kKeepQkv, kKeepAttention, kKeepMid, kKeepNorm };

  Tensor rotated(const PartPass& pass) const;  // the qkv that attention reads
  void rotate(const PartPass& pass) const;
  void attend(const PartPass& pass) const;

  ModelConfig config_;
  HeadLayout heads_;
  int64_t window_;  // 0: none
  Positions positions_;
  NormedLinear qkv_;
  Linear o_;
};

}  // namespace tokamak
