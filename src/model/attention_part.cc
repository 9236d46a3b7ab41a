#include "model/attention_part.h"

#include <algorithm>

#include "base/strings.h"
#include "model/part_pass.h"

namespace tokamak {

AttentionPart::AttentionPart(const ModelConfig& config, LayerAttention kind)
    : config_(config),
      heads_{config.num_attention_heads, config.kv_heads(), config.head_size()},
      window_(kind.type == LayerType::kSliding ? config.sliding_window : 0),
      positions_(kind.positions),
      qkv_{Linear(kQkvWeight, "qkv", {"qkv forward", "qkv dx", "qkv dw"},
                  {{"q_proj", config.q_width()}, {"k_proj", config.kv_width()}, {"v_proj", config.kv_width()}},
                  config.hidden_size),
           {.weight = kInputNorm, .rstd = kRstd, .output = kNorm, .kept = kKeepNorm, .eps = config.rms_norm_eps}},
      o_(kOWeight, "o", {"o forward", "o dx", "o dw"}, {{"o_proj", config.hidden_size}}, config.q_width()) {}

std::vector<WeightRow> AttentionPart::weights(int64_t layer) const {
  const std::string prefix = str("model.layers.", layer, "."), self = prefix + "self_attn.";
  std::vector<WeightRow> rows = {
      {kQkvWeight, WeightPlace::kMatrix, qkv_.linear.weights(self, config_.initializer_range)},
      {kOWeight, WeightPlace::kMatrix, o_.weights(self, config_.initializer_range)},
      {kInputNorm, WeightPlace::kInputNorm, norm_weight(prefix + "input_layernorm.weight", config_.hidden_size)}};
  if (config_.qkv_bias) rows.push_back({kQkvBias, WeightPlace::kVector, qkv_.linear.biases(self)});
  if (config_.qk_norm) {
    rows.push_back({kQNorm, WeightPlace::kVector, norm_weight(self + "q_norm.weight", heads_.head_dim)});
    rows.push_back({kKNorm, WeightPlace::kVector, norm_weight(self + "k_norm.weight", heads_.head_dim)});
  }
  return rows;
}

std::vector<ActivationRow> AttentionPart::activations(DType compute) const {
  const int64_t hidden = config_.hidden_size, qkv = config_.qkv_width(), q = config_.q_width();
  const DType f32 = DType::kF32;
  std::vector<ActivationRow> rows = {
      {kRstd, "rstd1", f32, Layout::kPerToken, 1, Life::kKept, kKeepQkv},
      {kQkv, "qkv", compute, Layout::kRows, qkv, Life::kKept, kKeepQkv, Reader::kAttention},
      {kLse, "lse", f32, Layout::kByHead, heads_.q_heads, Life::kKept, kKeepAttention, Reader::kAttention},
      {kAttn, "attention", compute, Layout::kRows, q, Life::kKept, kKeepAttention, Reader::kAttention},
      {kMid, "mid", compute, Layout::kRows, hidden, Life::kOutput, kKeepMid},
      {kNorm, "norm1", compute, Layout::kRows, hidden, Life::kKeptOrNorm, kKeepNorm},
      {kDQkv, "d qkv", compute, Layout::kRows, qkv, Life::kBackward},
      {kDAttn, "d attention", compute, Layout::kRows, q, Life::kBackward, kNotKept, Reader::kAttention}};
  if (config_.qk_norm) {
    rows.push_back(
        {kRotated, "rotated qkv", compute, Layout::kRows, qkv, Life::kBackward, kNotKept, Reader::kAttention});
    rows.push_back({kQkRstd, "qk rstd", f32, Layout::kPerToken, heads_.q_heads + heads_.kv_heads, Life::kShared});
  }
  return rows;
}

void AttentionPart::widen(Workload& largest) const {
  largest.heads = heads_;
  if (std::find(largest.windows.begin(), largest.windows.end(), window_) == largest.windows.end())
    largest.windows.push_back(window_);
}

std::vector<KeptRow> AttentionPart::kept() const {
  using enum KeptRow::Spares;
  return {{kKeepQkv, "qkv", kForward, qkv_.linear.flops()},
          {kKeepAttention, "attention", kForward, 0, attention_flops()},
          {kKeepMid, "mid", kForward, o_.flops()},
          {kKeepNorm, "norm1", kStore}};
}

Tensor AttentionPart::rotated(const PartPass& pass) const {
  const Tensor own = config_.qk_norm ? pass.a(kRotated) : Tensor();
  return own ? own : pass.a(kQkv);
}

// Normalises and rotates queries and keys. With qk_norm, backward repeats this instead of saving the result per layer.
void AttentionPart::rotate(const PartPass& pass) const {
  const PassInputs& in = pass.in;
  if (config_.qk_norm) {
    in.ops.qk_norm(in.compute, {.qkv = pass.a(kQkv),
                                .q_weight = pass.w(kQNorm),
                                .k_weight = pass.w(kKNorm),
                                .out = rotated(pass),
                                .rstd = pass.a(kQkRstd),
                                .heads = heads_,
                                .eps = static_cast<float>(config_.rms_norm_eps)});
  }
  if (positions_ == Positions::kNone) return;
  const CachedInputs* cached = in.batch.cached;
  in.ops.rope(in.compute, {.qkv = rotated(pass),
                           .positions = in.batch.positions,
                           .table = cached != nullptr && cached->rope ? cached->rope : in.rope,
                           .heads = heads_});
}

// With a cache, new tokens also attend to the cached tokens of their sequence.
void AttentionPart::attend(const PartPass& pass) const {
  const PassInputs& in = pass.in;
  const Tensor qkv = rotated(pass);
  if (const CachedInputs* cached = in.batch.cached) {
    const CachedSequences sequences{in.batch.cu_seqlens, cached->slots, cached->cached};
    const Tensor cache = cached->layers[pass.layer];
    in.ops.cache_append(in.compute, {.qkv = qkv, .sequences = sequences, .cache = cache, .heads = heads_});
    if (cached->max_cached > 0) {
      in.ops.cached_attention(in.compute, {.qkv = qkv,
                                           .sequences = sequences,
                                           .cache = cache,
                                           .out = pass.a(kAttn),
                                           .heads = heads_,
                                           .scale = heads_.scale(),
                                           .max_new = cached->max_new,
                                           .max_length = std::min(cached->max_cached + cached->max_new, in.max_length),
                                           .window = window_});
      return;
    }
  }
  in.ops.attention(in.compute, {.qkv = qkv,
                                .cu_seqlens = in.batch.cu_seqlens,
                                .out = pass.a(kAttn),
                                .lse = pass.a(kLse),
                                .heads = heads_,
                                .scale = heads_.scale(),
                                .max_length = in.max_length,
                                .tables = in.document_tables,
                                .window = window_});
}

void AttentionPart::forward(const PartPass& pass) const {
  if (!pass.computes(kKeepQkv) && !pass.computes(kKeepAttention) && !pass.computes(kKeepMid)) return;
  pass.use(0);
  if (pass.computes(kKeepQkv)) qkv_.forward(pass, pass.a(kQkv), config_.qkv_bias ? pass.w(kQkvBias) : Tensor());
  // RoPE rotates qkv in place. With qk_norm it leaves qkv raw, and writes a buffer that all layers share.
  if (pass.computes(config_.qk_norm ? kKeepAttention : kKeepQkv)) rotate(pass);
  if (pass.computes(kKeepAttention)) attend(pass);
  if (pass.computes(kKeepMid)) o_.forward(pass, pass.a(kAttn), pass.out, {.residual = pass.x});
}

void AttentionPart::backward(const PartPass& pass) const {
  const PassInputs& in = pass.in;
  Ops& ops = in.ops;
  Stream& compute = in.compute;
  const Tensor dqkv = pass.a(kDQkv);

  pass.begin(0);
  o_.dx(pass, in.dx, pass.a(kDAttn));
  o_.dw(pass, in.dx, pass.a(kAttn));
  if (config_.qk_norm) rotate(pass);
  ops.attention_backward(compute, {.qkv = rotated(pass),
                                   .cu_seqlens = in.batch.cu_seqlens,
                                   .out = pass.a(kAttn),
                                   .lse = pass.a(kLse),
                                   .dout = pass.a(kDAttn),
                                   .dqkv = dqkv,
                                   .heads = heads_,
                                   .scale = heads_.scale(),
                                   .max_length = in.max_length,
                                   .tables = in.document_tables,
                                   .window = window_});
  if (positions_ == Positions::kRotary) {
    ops.rope(compute, {.qkv = dqkv,
                       .positions = in.batch.positions,
                       .table = in.rope,
                       .heads = heads_,
                       .rotation = Rotation::kInverse});
  }
  if (config_.qk_norm) {
    ops.qk_norm_backward(compute, {.dqkv = dqkv,
                                   .qkv = pass.a(kQkv),
                                   .q_weight = pass.w(kQNorm),
                                   .k_weight = pass.w(kKNorm),
                                   .rstd = pass.a(kQkRstd),
                                   .dq_weight = pass.dw(kQNorm),
                                   .dk_weight = pass.dw(kKNorm),
                                   .heads = heads_});
  }
  if (config_.qkv_bias) ops.column_sums(compute, {.x = dqkv, .sums = pass.dw(kQkvBias)});
  qkv_.backward(pass, dqkv);
  pass.end(0);
}

}  // namespace tokamak
