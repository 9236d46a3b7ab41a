// The feed-forward: out = x + glu(norm(x) Wgu^T) Wd^T, SwiGLU or, by hidden_act, GeGLU. norm_placement says whether x,
// the branch that joins x, or both are normalised.
#pragma once

#include "model/linear.h"
#include "model/model_config.h"
#include "model/part.h"

namespace tokamak {

class MlpPart final : public Part {
 public:
  explicit MlpPart(const ModelConfig& config);

  std::vector<const char*> pieces() const override { return {"gate_up", "down"}; }
  std::vector<WeightRow> weights(int64_t layer) const override;
  std::vector<ActivationRow> activations(DType compute) const override;
  std::vector<KeptRow> kept() const override;
  std::vector<WatchedRow> watched() const override { return {{kSwiGlu, "mlp"}}; }
  void forward(const PartPass& pass) const override;
  void backward(const PartPass& pass) const override;

 private:
  enum Piece { kGateUpPiece, kDownPiece };
  enum Weight { kGateUpWeight, kDownWeight, kInputNorm, kOutputNorm, kGateUpBias, kDownBias };
  enum Activation {
    kRstd,      // (N)
    kGateUp,    // (N, 2 I)  backward writes its gradient here, too
    kNorm,      // (N, C)    input of the gate and up GEMM if there is a norm before it
    kSwiGlu,    // (N, I)    backward writes its gradient here, too
    kDown,      // (N, C)  with a norm after the feed-forward: its input
    kDownRstd,  // (N)     likewise
    kDBranch,   // (N, C)  with another norm_placement than pre: as BranchBegin and BranchEnd use it
  };
  enum Kept { kKeepGateUp, kKeepNorm, kKeepSwiGlu, kKeepDown };

  Gate gate() const { return config_.hidden_act == HiddenAct::kSilu ? Gate::kSilu : Gate::kGelu; }

  ModelConfig config_;
  BranchBegin gate_up_;
  BranchEnd down_;
};

}  // namespace tokamak
