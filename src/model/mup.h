// Maximal update parametrisation (muP, Yang et al. 2022, arXiv 2203.03466) with depth scaling (CompleteP, Dey et al.
// 2025, 2505.01618): the learning rate, initial values, decay and eps that suit a small base model suit wider and
// deeper ones. Published code multiplies logits by 1/m and residual branches by n^-alpha (EleutherAI/nanoGPT-mup,
// branch completep). Here the weights absorb these factors, so the forward pass and exported models stay plain Llama.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fields.h"

namespace tokamak {

struct ModelConfig;
struct ParamTable;

// The sizes of the base model. 0 is the model's own size.
struct MupOptions {
  int64_t base_hidden_size = 0;  // 0: no muP
  int64_t base_intermediate_size = 0;
  int64_t base_num_attention_heads = 0;
  int64_t base_head_dim = 0;
  int64_t base_num_hidden_layers = 0;
  double depth_alpha = 1.0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("base_hidden_size", base_hidden_size,
      "hidden_size of the model whose optimizer.lr, weight_decay, eps and initializer_range are given; 0: no muP");
    v("base_intermediate_size", base_intermediate_size,
      "its intermediate_size; 0: the model's own, if the hidden sizes are equal");
    v("base_num_attention_heads", base_num_attention_heads,
      "its num_attention_heads; 0: the model's own, if the hidden sizes are equal");
    v("base_head_dim", base_head_dim, "its head_dim; 0: by the rule of model.head_dim; equal heads transfer best");
    v("base_num_hidden_layers", base_num_hidden_layers,
      "its num_hidden_layers; 0: the model's own, so depth changes nothing");
    v("depth_alpha", depth_alpha,
      "residual branches of an n times deeper model add n^-alpha as much; 1 is CompleteP, 0.5 depth-muP (2310.02244)");
  }

  bool is_on() const { return base_hidden_size > 0; }
  // Every key that is out of range or contradicts the model's sizes. `model` has valid sizes.
  std::vector<FieldError> problems(const ModelConfig& model) const;
};

// Sets initial values and UpdateScale of every weight of the model's table by its role, if model.mup is on. With
// m = C/C_b, m_o = Hq D/(Hq D)_b, m_d = I/I_b, n = L/L_b and r = sqrt(D_b/D), factors of the base's values are:
//
//   weights                  init std (gain: value)     lr               decay           eps
//   embedding                1                          1                1               1/m
//   q, k, v, gate, up        1/sqrt(m)                  n^(alpha-1)/m    m               1/(m n^alpha)
//   o                        1/(sqrt(m_o) n^alpha)      1/(m_o n)        m_o n^alpha     1/m
//   down                     1/(sqrt(m_d) n^alpha)      1/(m_d n)        m_d n^alpha     1/m
//   head of its own          1/m                        1/m              m               1
//   final gain; if tied      1; 1/m                     1; 1/m           none            1/m; 1
//   layers' gains, biases    1                          n^(alpha-1)      none            1/(m n^alpha)
//
// r multiplies init and lr of q and its bias, and divides decay and eps; with qk_norm those of q's gain instead.
void apply_mup(const ModelConfig& model, ParamTable& table);

}  // namespace tokamak
