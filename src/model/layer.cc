// One decoder layer, forward and backward:
//   mid = x + attention(rope(norm1(x) Wqkv^T)) Wo^T          (with qkv_bias + b; with qk_norm rope(qk_norm(...)))
//   out = mid + swiglu(norm2(mid) Wgu^T) Wd^T
// Matrices are (out, in), as Hugging Face stores them.
#include <algorithm>

#include "model/transformer.h"

namespace tokamak {

namespace {

// y = x w^T
Gemm linear(const char* label, Tensor x, Tensor w, Tensor y) {
  return {.a = x, .b = w, .c = y, .trans_b = Transpose::kYes, .label = label};
}

// y = residual + x w^T
Gemm linear_onto(const char* label, Tensor residual, Tensor x, Tensor w, Tensor y) {
  return {.a = x, .b = w, .c = y, .residual = residual, .trans_b = Transpose::kYes, .label = label};
}

// dx = dy w
Gemm linear_dx(const char* label, Tensor dy, Tensor w, Tensor dx) { return {.a = dy, .b = w, .c = dx, .label = label}; }

// dw (+)= dy^T x
Gemm linear_dw(const char* label, Tensor dy, Tensor x, Tensor dw, Write write) {
  return {.a = dy, .b = x, .c = dw, .trans_a = Transpose::kYes, .write = write, .label = label};
}

}  // namespace

// Normalises and rotates the layer's queries and keys for attention. With qk_norm backward recomputes this instead of
// saving it per layer.
void Transformer::rotate_qkv(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l,
                             const LayerWeights& w) {
  const auto layer = static_cast<size_t>(l);
  const Tensor rotated = a.rotated_of(layer);
  if (config_.qk_norm) {
    ops_.qk_norm(compute, {.qkv = a.layers[layer].qkv,
                           .q_weight = w.q_norm,
                           .k_weight = w.k_norm,
                           .out = rotated,
                           .rstd = a.qk_rstd,
                           .heads = heads_,
                           .eps = static_cast<float>(config_.rms_norm_eps)});
  }
  ops_.rope(compute, {.qkv = rotated,
                      .positions = in.positions,
                      .table = in.cached && in.cached->rope ? in.cached->rope : rope_,
                      .heads = heads_});
}

Tensor Transformer::tables_of(const DeviceBatch& in) const {
  const int64_t documents = in.cu_seqlens.count() - 1;
  const bool from_cache = in.cached != nullptr && in.cached->max_cached > 0;
  const bool equal = documents * options_.max_length == in.count();
  return !tables_ || from_cache || equal || documents >= tables_.dim(1) ? Tensor() : tables_;
}

// With a cache, new tokens also attend to the cached tokens of their sequence.
void Transformer::attend(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  const Tensor qkv = a.rotated_of(static_cast<size_t>(l));
  if (in.cached != nullptr) {
    const CachedInputs& cached = *in.cached;
    const CachedSequences sequences{in.cu_seqlens, cached.slots, cached.cached};
    const Tensor cache = cached.layers[static_cast<size_t>(l)];
    ops_.cache_append(compute, {.qkv = qkv, .sequences = sequences, .cache = cache, .heads = heads_});
    if (cached.max_cached > 0) {
      ops_.cached_attention(compute, {.qkv = qkv,
                                      .sequences = sequences,
                                      .cache = cache,
                                      .out = s.attn,
                                      .heads = heads_,
                                      .scale = heads_.scale(),
                                      .max_new = cached.max_new,
                                      .max_length = std::min(cached.max_cached + cached.max_new, cache.dim(2))});
      return;
    }
  }
  ops_.attention(compute, {.qkv = qkv,
                           .cu_seqlens = in.cu_seqlens,
                           .out = s.attn,
                           .lse = s.lse,
                           .heads = heads_,
                           .scale = heads_.scale(),
                           .max_length = options_.max_length,
                           .tables = tables_of(in)});
}

void Transformer::layer_attention(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l,
                                  const LayerWeights& w, const PerKeptTensor<bool>& wanted) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  const auto eps = static_cast<float>(config_.rms_norm_eps);

  if (wanted[KeptTensor::kQkv]) {
    ops_.rmsnorm(compute, {.x = s.x, .weight = w.input_norm, .y = s.norm1, .rstd = s.rstd1, .eps = eps});
    Gemm qkv = linear("qkv forward", s.norm1, w.qkv, s.qkv);
    if (config_.qkv_bias) qkv.bias = w.qkv_bias;
    ops_.gemm(compute, qkv);
  }
  // In place, so with qkv; but qk_norm keeps the raw projection, and rotates into a buffer that all layers share.
  if (wanted[config_.qk_norm ? KeptTensor::kAttention : KeptTensor::kQkv]) rotate_qkv(compute, in, a, l, w);
  if (wanted[KeptTensor::kAttention]) attend(compute, in, a, l);
  if (wanted[KeptTensor::kMid]) ops_.gemm(compute, linear_onto("o forward", s.x, s.attn, w.o, s.mid));
}

void Transformer::layer_gate_up(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w,
                                const PerKeptTensor<bool>& wanted) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  if (!wanted[KeptTensor::kGateUp]) return;
  ops_.rmsnorm(compute, {.x = s.mid,
                         .weight = w.post_attention_norm,
                         .y = s.norm2,
                         .rstd = s.rstd2,
                         .eps = static_cast<float>(config_.rms_norm_eps)});
  ops_.gemm(compute, linear("gate_up forward", s.norm2, w.gate_up, s.gate_up));
}

void Transformer::layer_down(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  ops_.swiglu(compute, {.gate_up = s.gate_up, .out = s.swiglu});
  ops_.gemm(compute, linear_onto("down forward", s.mid, s.swiglu, w.down, a.output_of(static_cast<size_t>(l))));
}

// A GEMM's input and the gradient of that input share a buffer. If the input was kept, the weight's gradient is computed
// first. Otherwise the operation that reads the input's gradient overwrites it with the recomputed input, in the same
// pass over memory.
//
// a.dx is the gradient of the layer's output. On return s.gate_up is its own gradient.
void Transformer::backward_down(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w,
                                const LayerWeights& dw, Write write) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  const bool again = activations_.recomputed(l)[KeptTensor::kSwiGlu];
  const auto down_dw = [&] { ops_.gemm(compute, linear_dw("down dw", a.dx, s.swiglu, dw.down, write)); };

  if (!again) down_dw();
  ops_.gemm(compute, linear_dx("down dx", a.dx, w.down, s.swiglu));
  ops_.swiglu_backward(
      compute, {.gate_up = s.gate_up, .dout = s.swiglu, .dgate_up = s.gate_up, .out = again ? s.swiglu : Tensor{}});
  if (again) down_dw();
}

// On entry a.dx is the gradient of the layer's output, on return that of `mid`.
void Transformer::backward_gate_up(Stream& compute, const Activations& a, int64_t l, const LayerWeights& w,
                                   const LayerWeights& dw, Write write) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];
  const Tensor dgate_up = s.gate_up;
  const bool again = activations_.recomputed(l)[KeptTensor::kNorm2];
  const auto gate_up_dw = [&] { ops_.gemm(compute, linear_dw("gate_up dw", dgate_up, s.norm2, dw.gate_up, write)); };

  if (!again) gate_up_dw();
  ops_.gemm(compute, linear_dx("gate_up dx", dgate_up, w.gate_up, s.norm2));
  ops_.rmsnorm_backward(compute, {.dy = s.norm2,
                                  .x = s.mid,
                                  .weight = w.post_attention_norm,
                                  .rstd = s.rstd2,
                                  .dresidual = a.dx,
                                  .dx = a.dx,
                                  .dweight = dw.post_attention_norm,
                                  .y = again ? s.norm2 : Tensor{}});
  if (again) gate_up_dw();
}

// On entry a.dx is the gradient of `mid`, on return that of the layer's input.
void Transformer::backward_attention(Stream& compute, const DeviceBatch& in, const Activations& a, int64_t l,
                                     const LayerWeights& w, const LayerWeights& dw, Write write) {
  const LayerActivations& s = a.layers[static_cast<size_t>(l)];

  ops_.gemm(compute, linear_dx("o dx", a.dx, w.o, a.dattn));
  ops_.gemm(compute, linear_dw("o dw", a.dx, s.attn, dw.o, write));
  if (config_.qk_norm) rotate_qkv(compute, in, a, l, w);
  ops_.attention_backward(compute, {.qkv = a.rotated_of(static_cast<size_t>(l)),
                                    .cu_seqlens = in.cu_seqlens,
                                    .out = s.attn,
                                    .lse = s.lse,
                                    .dout = a.dattn,
                                    .dqkv = a.dqkv,
                                    .heads = heads_,
                                    .scale = heads_.scale(),
                                    .max_length = options_.max_length,
                                    .tables = tables_of(in)});
  ops_.rope(
      compute,
      {.qkv = a.dqkv, .positions = in.positions, .table = rope_, .heads = heads_, .rotation = Rotation::kInverse});
  if (config_.qk_norm) {
    ops_.qk_norm_backward(compute, {.dqkv = a.dqkv,
                                    .qkv = s.qkv,
                                    .q_weight = w.q_norm,
                                    .k_weight = w.k_norm,
                                    .rstd = a.qk_rstd,
                                    .dq_weight = dw.q_norm,
                                    .dk_weight = dw.k_norm,
                                    .heads = heads_});
  }
  if (config_.qkv_bias) ops_.column_sums(compute, {.x = a.dqkv, .sums = dw.qkv_bias});

  const bool again = activations_.recomputed(l)[KeptTensor::kNorm1];
  const auto qkv_dw = [&] { ops_.gemm(compute, linear_dw("qkv dw", a.dqkv, s.norm1, dw.qkv, write)); };
  if (!again) qkv_dw();
  ops_.gemm(compute, linear_dx("qkv dx", a.dqkv, w.qkv, s.norm1));
  ops_.rmsnorm_backward(compute, {.dy = s.norm1,
                                  .x = s.x,
                                  .weight = w.input_norm,
                                  .rstd = s.rstd1,
                                  .dresidual = a.dx,
                                  .dx = a.dx,
                                  .dweight = dw.input_norm,
                                  .y = again ? s.norm1 : Tensor{}});
  if (again) qkv_dw();
}

}  // namespace tokamak
