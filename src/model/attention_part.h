// Attention: out = x + attention(rope(norm(x) Wqkv^T)) Wo^T. With qkv_bias or o_bias, a product gets a bias. With
// qk_norm, queries and keys are normalised before RoPE. norm_placement says whether x, the branch that joins x, or both
// are normalised. Kinds of layers differ in the window and in whether there is a RoPE.
#pragma once

#include "model/linear.h"
#include "model/model_config.h"
#include "model/part.h"

namespace tokamak {

enum class Positions { kRotary, kLocalRotary, kNone };  // kLocalRotary: by rope_local_base_freq
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
  enum Weight { kQkvWeight, kOWeight, kInputNorm, kQkvBias, kQNorm, kKNorm, kOutputNorm, kOBias };
  enum Activation {
    kRstd,     // (N)
    kQkv,      // (N, (Hq + 2 Hkv) D)  rotated; the raw projection if kRotated exists
    kLse,      // (Hq, N)
    kAttn,     // (N, Hq D)
    kMid,      // (N, C)               the part's output
    kNorm,     // (N, C)               input of the QKV GEMM if there is a norm before it
    kDQkv,     // (N, (Hq + 2 Hkv) D)
    kDAttn,    // (N, Hq D)
    kRotated,  // (N, (Hq + 2 Hkv) D)  with qk_norm: qkv normalised and rotated; inference overwrites kQkv instead
    kQkRstd,   // QkNorm::rstd         only with qk_norm
    kO,        // (N, C)               with a norm after attention: its input
    kORstd,    // (N)                  likewise
    kDBranch,  // (N, C)               with another norm_placement than pre: as BranchBegin and BranchEnd use it
  };
  enum Kept { kKeepQkv, kKeepAttention, kKeepMid, kKeepNorm, kKeepO };

  HeadNorm head_norm() const { return config_.qk_norm == QkNormKind::kAll ? HeadNorm::kTogether : HeadNorm::kEach; }
  Tensor rope_table(const PartPass& pass) const;
  Tensor rotated(const PartPass& pass) const;  // the qkv that attention reads
  void rotate(const PartPass& pass) const;
  void attend(const PartPass& pass) const;

  ModelConfig config_;
  HeadLayout heads_;
  float scale_;     // of the logits
  float cap_;       // likewise; 0: none
  int64_t window_;  // 0: none
  Positions positions_;
  BranchBegin qkv_;
  BranchEnd o_;
};

}  // namespace tokamak
