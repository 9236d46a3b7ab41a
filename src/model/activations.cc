#include "model/activations.h"

#include "base/strings.h"

namespace tokamak {

ActivationPlan::ActivationPlan(const ModelConfig& config, int64_t tokens, DType compute, Keep keep, MemoryPlan& plan)
    : backward_(keep != Keep::kNothing) {
  const int64_t hidden = config.hidden_size, intermediate = config.intermediate_size;
  const int64_t heads = config.num_attention_heads;
  const auto act = [&](const std::string& name, int64_t width) {
    return plan.add("activations/" + name, compute, Shape{tokens, width});
  };
  const auto per_token = [&](const std::string& name) {
    return plan.add("activations/" + name, DType::kF32, Shape{tokens});
  };
  LayerSlots shared;  // the buffers of the layer before, where all layers use the same
  for (int64_t l = 0; l < config.num_hidden_layers; ++l) {
    const std::string name = str("layer.", l, " ");
    LayerSlots slots = shared;
    // In inference two layers alternate: each reads its own input and writes the other's.
    if (keep != Keep::kNothing || l < 2) slots.x = act(name + "input", hidden);
    if (keep == Keep::kNothing && l >= 2) slots.x = layers_[static_cast<size_t>(l - 2)].x;
    if (keep == Keep::kBackward || l == 0) {
      slots.rstd1 = per_token(name + "rstd1");
      slots.qkv = act(name + "qkv", config.qkv_width());
      slots.lse = plan.add("activations/" + name + "lse", DType::kF32, Shape{heads, tokens});
      slots.attn = act(name + "attention", config.q_width());
      slots.mid = act(name + "mid", hidden);
      slots.rstd2 = per_token(name + "rstd2");
      slots.gate_up = act(name + "gate_up", 2 * intermediate);
    }
    layers_.push_back(slots);
    shared = slots;
  }
  last_ = act("output", hidden);
  rstd_final_ = per_token("rstd_final");
  norm_ = act("norm", hidden);
  swiglu_ = act("swiglu", intermediate);
  token_loss_ = per_token("token_loss");
  if (config.qk_norm) {
    if (backward_) rotated_ = act("rotated qkv", config.qkv_width());
    qk_rstd_ = plan.add("activations/qk rstd", DType::kF32, Shape{tokens * (heads + config.kv_heads())});
  }
  if (!backward_) return;
  dx_ = act("d residual", hidden);
  dqkv_ = act("d qkv", config.qkv_width());
  dattn_ = act("d attention", config.q_width());
}

Activations ActivationPlan::commit(const Arena& arena) const {
  Activations a;
  for (const LayerSlots& s : layers_) {
    a.layers.push_back({arena[s.x], arena[s.rstd1], arena[s.qkv], arena[s.lse], arena[s.attn], arena[s.mid],
                        arena[s.rstd2], arena[s.gate_up]});
  }
  a.last = arena[last_];
  a.rstd_final = arena[rstd_final_];
  a.norm = arena[norm_];
  a.swiglu = arena[swiglu_];
  a.token_loss = arena[token_loss_];
  if (rotated_) a.rotated = arena[*rotated_];
  if (qk_rstd_) a.qk_rstd = arena[*qk_rstd_];
  if (!backward_) return a;
  a.dx = arena[dx_];
  a.dqkv = arena[dqkv_];
  a.dattn = arena[dattn_];
  return a;
}

Activations Activations::first_rows(int64_t tokens) const {
  const auto rows = [tokens](Tensor t) { return t ? t.rows(0, tokens) : t; };
  Activations a;
  for (const LayerActivations& s : layers) {
    const Tensor lse = s.lse.flat(0, s.lse.dim(0) * tokens).reshape({s.lse.dim(0), tokens});
    a.layers.push_back(
        {rows(s.x), rows(s.rstd1), rows(s.qkv), lse, rows(s.attn), rows(s.mid), rows(s.rstd2), rows(s.gate_up)});
  }
  a.last = rows(last);
  a.rstd_final = rows(rstd_final);
  a.norm = rows(norm);
  a.swiglu = rows(swiglu);
  a.token_loss = rows(token_loss);
  a.rotated = rows(rotated);
  if (qk_rstd) a.qk_rstd = qk_rstd.flat(0, tokens * (qk_rstd.count() / token_loss.count()));
  a.dx = rows(dx);
  a.dqkv = rows(dqkv);
  a.dattn = rows(dattn);
  return a;
}

}  // namespace tokamak
