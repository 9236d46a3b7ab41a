// The feed-forward: out = x + swiglu(norm(x) Wgu^T) Wd^T.
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
  enum Weight { kGateUpWeight, kDownWeight, kInputNorm };
  enum Activation {
    kRstd,    // (N)
    kGateUp,  // (N, 2 I)  backward writes its gradient here, too
    kNorm,    // (N, C)    input of the gate and up GEMM
    kSwiGlu,  // (N, I)    backward writes its gradient here, too
  };
  enum Kept { kKeepGateUp, kKeepNorm, kKeepSwiGlu };

  ModelConfig config_;
  NormedLinear gate_up_;
  Linear down_;
};

}  // namespace tokamak
