#include "model/attention_part.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "model/part_pass.h"

namespace tokamak {

AttentionPart::AttentionPart(const ModelConfig& config, LayerAttention kind)
    : config_(config),
      heads_{config.num_attention_heads, config.kv_heads(), config.head_size()},
      scale_(config.query_pre_attn_scalar > 0 ? static_cast<float>(1 / std::sqrt(config.query_pre_attn_scalar))
                                              : heads_.scale()),
      cap_(static_cast<float>(config.attn_logit_softcapping)),
      window_(kind.type == LayerType::kSliding ? config.sliding_window : 0),
      positions_(kind.positions),
      qkv_{Linear({kQkvWeight, id_if(config.qkv_bias, kQkvBias)}, "qkv", {"qkv forward", "qkv dx", "qkv dw"},
                  {{"q_proj", config.q_width()}, {"k_proj", config.kv_width()}, {"v_proj", config.kv_width()}},
                  config.hidden_size),
           {},
           kDBranch},
      o_{Linear({kOWeight, id_if(config.o_bias, kOBias)}, "o", {"o forward", "o dx", "o dw"},
                {{"o_proj", config.hidden_size}}, config.q_width()),
         {},
         kDBranch} {
  const auto eps = static_cast<float>(config.rms_norm_eps);
  if (config.has_pre_norms()) qkv_.norm = {kInputNorm, kRstd, kNorm, kKeepNorm, eps, config.norm_offset()};
  if (config.has_post_norms()) o_.norm = {kOutputNorm, kO, kORstd, kKeepO, eps, config.norm_offset()};
}

std::vector<WeightRow> AttentionPart::weights(int64_t layer) const {
  const std::string prefix = str("model.layers.", layer, "."), self = prefix + "self_attn.";
  std::vector<WeightRow> rows = {
      {kQkvWeight, WeightPlace::kMatrix, qkv_.linear.weights(self, config_.initializer_range)},
      {kOWeight, WeightPlace::kMatrix, o_.linear.weights(self, config_.output_range())}};
  const auto add_norm = [&](int id, WeightPlace place, const std::string& name, int64_t width) {
    rows.push_back({id, place, norm_weight(name, width, config_.norm_offset())});
  };
  if (qkv_.norm) add_norm(kInputNorm, WeightPlace::kInputNorm, prefix + "input_layernorm.weight", config_.hidden_size);
  if (config_.qkv_bias) rows.push_back({kQkvBias, WeightPlace::kVector, qkv_.linear.biases(self)});
  if (config_.o_bias) rows.push_back({kOBias, WeightPlace::kVector, o_.linear.biases(self)});
  if (config_.has_qk_norm()) {
    const bool each = head_norm() == HeadNorm::kEach;
    add_norm(kQNorm, WeightPlace::kVector, self + "q_norm.weight", each ? heads_.head_dim : heads_.q_width());
    add_norm(kKNorm, WeightPlace::kVector, self + "k_norm.weight", each ? heads_.head_dim : heads_.kv_width());
  }
  if (o_.norm)
    add_norm(kOutputNorm, WeightPlace::kVector, prefix + "post_attention_layernorm.weight", config_.hidden_size);
  return rows;
}

std::vector<ActivationRow> AttentionPart::activations(DType compute) const {
  const int64_t hidden = config_.hidden_size, qkv = config_.qkv_width(), q = config_.q_width();
  const DType f32 = DType::kF32;
  std::vector<ActivationRow> rows = {
      {kQkv, "qkv", compute, Layout::kRows, qkv, Life::kKept, kKeepQkv, Reader::kAttention},
      {kLse, "lse", f32, Layout::kByHead, heads_.q_heads, Life::kKept, kKeepAttention, Reader::kAttention},
      {kAttn, "attention", compute, Layout::kRows, q, Life::kKept, kKeepAttention, Reader::kAttention},
      {kMid, "mid", compute, Layout::kRows, hidden, Life::kOutput, kKeepMid},
      {kDQkv, "d qkv", compute, Layout::kRows, qkv, Life::kBackward},
      {kDAttn, "d attention", compute, Layout::kRows, q, Life::kBackward, kNotKept, Reader::kAttention}};
  if (qkv_.norm) {
    rows.push_back({kRstd, "rstd1", f32, Layout::kPerToken, 1, Life::kKept, kKeepQkv});
    rows.push_back({kNorm, "norm1", compute, Layout::kRows, hidden, Life::kKeptOrNorm, kKeepNorm});
  }
  if (o_.norm) {
    rows.push_back({kO, "o", compute, Layout::kRows, hidden, Life::kKept, kKeepO});
    rows.push_back({kORstd, "rstd of o", f32, Layout::kPerToken, 1, Life::kKept, kKeepO});
    rows.push_back({kDBranch, "d branch", compute, Layout::kRows, hidden, Life::kBackward});
  }
  if (config_.has_qk_norm()) {
    rows.push_back(
        {kRotated, "rotated qkv", compute, Layout::kRows, qkv, Life::kBackward, kNotKept, Reader::kAttention});
    const int64_t norms = head_norm() == HeadNorm::kEach ? heads_.q_heads + heads_.kv_heads : 2;
    rows.push_back({kQkRstd, "qk rstd", f32, Layout::kPerToken, norms, Life::kShared});
  }
  return rows;
}

void AttentionPart::widen(Workload& largest) const {
  largest.heads = heads_;
  largest.head_norm = head_norm();
  if (std::find(largest.windows.begin(), largest.windows.end(), window_) == largest.windows.end())
    largest.windows.push_back(window_);
}

std::vector<KeptRow> AttentionPart::kept() const {
  using enum KeptRow::Spares;
  std::vector<KeptRow> rows = {{kKeepQkv, "qkv", kForward, qkv_.linear.flops()},
                               {kKeepAttention, "attention", kForward, 0, attention_flops()}};
  if (o_.norm) {
    rows.push_back({kKeepO, "o", kForward, o_.linear.flops()});
    rows.push_back({kKeepMid, "mid", kStore});
  } else {
    rows.push_back({kKeepMid, "mid", kForward, o_.linear.flops()});
  }
  if (qkv_.norm) rows.push_back({kKeepNorm, "norm1", kStore});
  return rows;
}

Tensor AttentionPart::rope_table(const PartPass& pass) const {
  if (positions_ == Positions::kLocalRotary) return pass.in.rope_local;
  const CachedInputs* cached = pass.in.batch.cached;
  return cached != nullptr && cached->rope ? cached->rope : pass.in.rope;
}

Tensor AttentionPart::rotated(const PartPass& pass) const {
  const Tensor own = config_.has_qk_norm() ? pass.a(kRotated) : Tensor();
  return own ? own : pass.a(kQkv);
}

// Normalises and rotates queries and keys. With qk_norm, backward repeats this instead of saving the result per layer.
void AttentionPart::rotate(const PartPass& pass) const {
  const PassInputs& in = pass.in;
  if (config_.has_qk_norm()) {
    in.ops.qk_norm(in.compute, {.qkv = pass.a(kQkv),
                                .q_weight = pass.w(kQNorm),
                                .k_weight = pass.w(kKNorm),
                                .out = rotated(pass),
                                .rstd = pass.a(kQkRstd),
                                .heads = heads_,
                                .eps = static_cast<float>(config_.rms_norm_eps),
                                .over = head_norm(),
                                .offset = config_.norm_offset()});
  }
  if (positions_ == Positions::kNone) return;
  in.ops.rope(in.compute,
              {.qkv = rotated(pass), .positions = in.batch.positions, .table = rope_table(pass), .heads = heads_});
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
                                           .scale = scale_,
                                           .max_new = cached->max_new,
                                           .max_length = cached->max_length,
                                           .window = window_,
                                           .cap = cap_});
      return;
    }
  }
  in.ops.attention(in.compute, {.qkv = qkv,
                                .cu_seqlens = in.batch.cu_seqlens,
                                .out = pass.a(kAttn),
                                .lse = pass.a(kLse),
                                .heads = heads_,
                                .scale = scale_,
                                .max_length = in.max_length,
                                .tables = in.document_tables,
                                .window = window_,
                                .cap = cap_});
}

void AttentionPart::forward(const PartPass& pass) const {
  const bool ends = pass.computes(kKeepMid) || (o_.norm && pass.computes(kKeepO));
  if (!pass.computes(kKeepQkv) && !pass.computes(kKeepAttention) && !ends) return;
  pass.use(0);
  if (pass.computes(kKeepQkv)) qkv_.forward(pass, pass.a(kQkv));
  // RoPE rotates qkv in place. With qk_norm it leaves qkv raw, and writes a buffer that all layers share.
  if (pass.computes(config_.has_qk_norm() ? kKeepAttention : kKeepQkv)) rotate(pass);
  if (pass.computes(kKeepAttention)) attend(pass);
  if (ends) o_.forward(pass, pass.a(kAttn));
}

void AttentionPart::backward(const PartPass& pass) const {
  const PassInputs& in = pass.in;
  Ops& ops = in.ops;
  Stream& compute = in.compute;
  const Tensor dqkv = pass.a(kDQkv);

  pass.begin(0);
  const Tensor d_o = o_.gradient(pass);
  o_.linear.dx(pass, d_o, pass.a(kDAttn));
  o_.linear.dw(pass, d_o, pass.a(kAttn));
  if (config_.has_qk_norm()) rotate(pass);
  ops.attention_backward(compute, {.qkv = rotated(pass),
                                   .cu_seqlens = in.batch.cu_seqlens,
                                   .out = pass.a(kAttn),
                                   .lse = pass.a(kLse),
                                   .dout = pass.a(kDAttn),
                                   .dqkv = dqkv,
                                   .heads = heads_,
                                   .scale = scale_,
                                   .max_length = in.max_length,
                                   .tables = in.document_tables,
                                   .window = window_,
                                   .cap = cap_});
  if (positions_ != Positions::kNone) {
    ops.rope(compute, {.qkv = dqkv,
                       .positions = in.batch.positions,
                       .table = rope_table(pass),
                       .heads = heads_,
                       .rotation = Rotation::kInverse});
  }
  if (config_.has_qk_norm()) {
    ops.qk_norm_backward(compute, {.dqkv = dqkv,
                                   .qkv = pass.a(kQkv),
                                   .q_weight = pass.w(kQNorm),
                                   .k_weight = pass.w(kKNorm),
                                   .rstd = pass.a(kQkRstd),
                                   .dq_weight = pass.dw(kQNorm),
                                   .dk_weight = pass.dw(kKNorm),
                                   .heads = heads_,
                                   .over = head_norm(),
                                   .offset = config_.norm_offset()});
  }
  qkv_.backward(pass, dqkv);
  pass.end(0);
}

}  // namespace tokamak
