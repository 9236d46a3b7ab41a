#include "cuda/attention_cudnn_flash.h"

#include <utility>

namespace tokamak {
namespace {

using Tensor = CudnnOperations::Tensor;

constexpr int64_t kRows = 2, kColumns = 3;  // of scores: dimensions

class Flash {
 public:
  explicit Flash(const AttentionGraphSpec& spec)
      : spec_(spec),
        b_(spec.documents.count),
        t_(spec.documents.length),
        hq_(spec.heads.q_heads),
        d_(spec.heads.head_dim) {}

  CudnnOperations forward() {
    const Tensor query = call(kQuery), keys = transposed(kKey);
    const Tensor masked = causal(scaled(product(query, keys), call(kScale)));
    // Softmax of each row: e / sum, with Stats = max + ln(sum).
    const Tensor max = per_row(), difference = scores(), e = scores(), sum = per_row(), log = per_row();
    ops_.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, max);
    ops_.pointwise(CUDNN_POINTWISE_SUB, {.x = masked, .b = max}, difference);
    ops_.pointwise(CUDNN_POINTWISE_EXP, {.x = difference}, e);
    ops_.reduce(CUDNN_REDUCE_TENSOR_ADD, e, sum);
    ops_.pointwise(CUDNN_POINTWISE_LOG, {.x = sum}, log);
    ops_.pointwise(CUDNN_POINTWISE_ADD, {.x = max, .b = log}, call(kStats));
    const Tensor probabilities = scores(CUDNN_DATA_BFLOAT16);
    ops_.pointwise(CUDNN_POINTWISE_DIV, {.x = e, .b = sum}, probabilities);
    ops_.matmul(probabilities, call(kValue), call(kOut));
    return std::move(ops_);
  }

  CudnnOperations backward() {
    const Tensor dout = call(kDOut), query = call(kQuery), keys = transposed(kKey), scale = call(kScale);
    const Tensor row_sums = sums_of_rows(dout, call(kOut));
    // P = exp(S - Stats), dV = P^T dO
    const Tensor shifted = scores(), p = scores();
    ops_.pointwise(CUDNN_POINTWISE_SUB, {.x = scaled(product(query, keys), scale), .b = call(kStats)}, shifted);
    ops_.pointwise(CUDNN_POINTWISE_EXP, {.x = causal(shifted)}, p);
    of_all_queries(p, dout, kDValue);
    // dS = scale (dO V^T - row sums) P, dK = dS^T Q
    const Tensor difference = scores(), ds = scores();
    ops_.pointwise(CUDNN_POINTWISE_SUB, {.x = product(dout, transposed(kValue)), .b = row_sums}, difference);
    ops_.pointwise(CUDNN_POINTWISE_MUL, {.x = difference, .b = p}, ds);
    const Tensor scaled_ds = scaled(ds, scale);
    of_all_queries(scaled_ds, query, kDKey);
    of_all_keys(scaled_ds, keys);
    return std::move(ops_);
  }

 private:
  Tensor call(CallTensor tensor) {
    const CallTensorShape shape = shape_of(spec_, tensor);
    return ops_.tensor({.dims = shape.dims,
                        .strides = shape.strides,
                        .type = shape.is_f32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16,
                        .id = tensor,
                        .by_value = tensor == kScale});
  }
  Tensor transposed(CallTensor tensor) {  // (B, Hkv, D, T)
    CallTensorShape shape = shape_of(spec_, tensor);
    std::swap(shape.dims[2], shape.dims[3]);
    std::swap(shape.strides[2], shape.strides[3]);
    return ops_.tensor({.dims = shape.dims, .strides = shape.strides, .type = CUDNN_DATA_BFLOAT16, .id = tensor});
  }
  Tensor constant(FlashTensor id) {
    return ops_.tensor({.dims = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .id = id, .by_value = true});
  }
  Tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {  // (B, Hq, T, T)
    return ops_.tensor({.dims = {b_, hq_, t_, t_}, .strides = {hq_ * t_ * t_, t_ * t_, t_, 1}, .type = type});
  }
  Tensor per_row(int64_t id = 0) {  // (B, Hq, T, 1)
    return ops_.tensor({.dims = {b_, hq_, t_, 1}, .strides = {hq_ * t_, t_, 1, 1}, .id = id});
  }
  Tensor per_query(cudnnDataType_t type, int64_t id = 0) {  // (B, Hq, T, D)
    return ops_.tensor({.dims = {b_, hq_, t_, d_}, .strides = {hq_ * t_ * d_, t_ * d_, d_, 1}, .type = type, .id = id});
  }

  Tensor product(Tensor rows, Tensor columns) {
    const Tensor result = scores();
    ops_.matmul(rows, columns, result);
    return result;
  }

  Tensor scaled(Tensor x, Tensor scale) {
    const Tensor result = scores();
    ops_.pointwise(CUDNN_POINTWISE_MUL, {.x = x, .b = scale}, result);
    return result;
  }

  // Minus infinity wherever the key comes after the query.
  Tensor causal(Tensor x) {
    const Tensor row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32), seen = scores(CUDNN_DATA_BOOLEAN),
                 result = scores();
    ops_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {.x = x, .axis = kRows}, row);
    ops_.pointwise(CUDNN_POINTWISE_GEN_INDEX, {.x = x, .axis = kColumns}, column);
    ops_.pointwise(CUDNN_POINTWISE_CMP_GE, {.x = row, .b = column, .compute = CUDNN_DATA_BOOLEAN}, seen);
    ops_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, {.x = x, .b = constant(kMinusInfinity), .t = seen}, result);
    return result;
  }

  // Of dO and O, element by element. The product by 1 is where dropout would scale.
  Tensor sums_of_rows(Tensor dout, Tensor out) {
    const Tensor product = ops_.tensor({.dims = {b_, hq_, t_, d_}, .strides = {hq_ * t_ * d_, t_ * d_, hq_ * d_, 1}});
    const Tensor sum = per_row(), result = per_row(kRowSums);
    ops_.pointwise(CUDNN_POINTWISE_MUL, {.x = dout, .b = out}, product);
    ops_.reduce(CUDNN_REDUCE_TENSOR_ADD, product, sum);
    ops_.pointwise(CUDNN_POINTWISE_MUL, {.x = sum, .b = constant(kOne)}, result);
    return result;
  }

  // x^T rows, summed over the query heads that share a key head.
  void of_all_queries(Tensor x, Tensor rows, CallTensor result) {
    const Tensor turned = ops_.tensor(
        {.dims = {b_, hq_, t_, t_}, .strides = {hq_ * t_ * t_, t_ * t_, 1, t_}, .type = CUDNN_DATA_BFLOAT16});
    ops_.reshape(x, turned);
    if (spec_.heads.kv_heads == hq_) return ops_.matmul(turned, rows, call(result));
    const Tensor of_each_head = per_query(CUDNN_DATA_BFLOAT16);
    ops_.matmul(turned, rows, of_each_head);
    ops_.reduce(CUDNN_REDUCE_TENSOR_ADD, of_each_head, call(result));
  }

  // dQ = dS K. Unless it must be deterministic, blocks of keys add to it in any order, in f32.
  void of_all_keys(Tensor ds, Tensor keys) {
    const CallTensorShape shape = shape_of(spec_, kKey);
    const Tensor turned = ops_.tensor({.dims = shape.dims, .strides = shape.strides});
    ops_.reshape(keys, turned);
    if (spec_.deterministic) return ops_.matmul(ds, turned, call(kDQuery));
    const Tensor sum = per_query(CUDNN_DATA_FLOAT, kDQueryF32);
    ops_.matmul(ds, turned, sum);
    ops_.pointwise(CUDNN_POINTWISE_IDENTITY, {.x = sum}, call(kDQuery));
  }

  const AttentionGraphSpec& spec_;
  int64_t b_, t_, hq_, d_;
  CudnnOperations ops_{kFirstInnerTensor};
};

}  // namespace

CudnnOperations flash_forward(const AttentionGraphSpec& spec) { return Flash(spec).forward(); }
CudnnOperations flash_backward(const AttentionGraphSpec& spec) { return Flash(spec).backward(); }

int64_t row_sums_bytes(const AttentionGraphSpec& spec) {
  return spec.backward ? spec.documents.tokens() * spec.heads.q_heads * int64_t{sizeof(float)} : 0;
}

int64_t dquery_f32_bytes(const AttentionGraphSpec& spec) {
  return spec.backward && !spec.deterministic ? spec.documents.tokens() * spec.heads.q_width() * int64_t{sizeof(float)}
                                              : 0;
}

}  // namespace tokamak
