// Helpers for the checks of operations (ops.cc): shapes, dtypes, overlaps. A failed check is a bug of ours, reported
// with the tensor's name.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "backend/attended.h"
#include "backend/ops.h"
#include "base/error.h"

namespace tokamak {

struct Named {
  const char* name;
  const Tensor& tensor;
};

inline bool overlap(const Tensor& a, const Tensor& b) {
  if (!a || !b) return false;
  const auto* x = static_cast<const std::byte*>(a.data());
  const auto* y = static_cast<const std::byte*>(b.data());
  return x < y + b.bytes() && y < x + a.bytes();
}

inline void expect_shape(const Named& x, const Shape& shape) {
  TOKAMAK_CHECK(x.tensor || x.tensor.count() == 0, x.name, " is missing");
  TOKAMAK_CHECK(x.tensor.shape() == shape, x.name, " is ", x.tensor.text(), ", expected ", shape.text());
}

inline void expect(const Named& x, DType dtype, const Shape& shape) {
  expect_shape(x, shape);
  TOKAMAK_CHECK(x.tensor.dtype() == dtype, x.name, " is ", x.tensor.text(), ", expected ", name_of(dtype));
}

inline void expect_rank(const Named& x, int rank) {
  TOKAMAK_CHECK(x.tensor || x.tensor.count() == 0, x.name, " is missing");
  TOKAMAK_CHECK(x.tensor.shape().rank() == rank, x.name, " is ", x.tensor.text(), ", expected rank ", rank);
}

inline bool is_act(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

inline void expect_act(const Named& x, int rank) {
  expect_rank(x, rank);
  TOKAMAK_CHECK(is_act(x.tensor.dtype()), x.name, " is ", x.tensor.text(), ", expected F32 or BF16");
}

inline void expect_heads(const HeadLayout& heads) {
  TOKAMAK_CHECK(heads.q_heads > 0 && heads.kv_heads > 0 && heads.q_heads % heads.kv_heads == 0 && heads.head_dim > 0 &&
                    heads.head_dim % 2 == 0,
                heads.q_heads, " query heads, ", heads.kv_heads, " key-value heads, head size ", heads.head_dim);
}

inline void expect_tables(const Tensor& tables, const Tensor& cu_seqlens) {
  expect({"cu_seqlens", cu_seqlens}, DType::kI32, {cu_seqlens.count()});
  expect_rank({"tables", tables}, 2);
  expect({"tables", tables}, DType::kI32, {DocumentTables::kRows, tables.dim(1)});
  TOKAMAK_CHECK(0 < cu_seqlens.count() && cu_seqlens.count() <= tables.dim(1), "tables are ", tables.text(),
                ", cu_seqlens is ", cu_seqlens.text());
}

inline void expect_rounding(const StochasticRounding& rounding) {
  TOKAMAK_CHECK(rounding.first >= 0 && rounding.step >= 0, "rounding of element ", rounding.first, " in step ",
                rounding.step);
}

// Checks the arguments common to the norm of queries and keys and its gradient.
template <class Args>
void expect_qk_norm(const Args& args, const Named& rows) {
  const HeadLayout& heads = args.heads;
  expect_heads(heads);
  expect_act(rows, 2);
  const DType act = rows.tensor.dtype();
  const int64_t n = rows.tensor.dim(0);
  expect_shape(rows, {n, heads.qkv_width()});
  expect({"qkv", args.qkv}, act, rows.tensor.shape());
  const bool each = args.over == HeadNorm::kEach;
  expect({"q_weight", args.q_weight}, act, {each ? heads.head_dim : heads.q_width()});
  expect({"k_weight", args.k_weight}, act, {each ? heads.head_dim : heads.kv_width()});
  expect({"rstd", args.rstd}, DType::kF32, {n * (each ? heads.q_heads + heads.kv_heads : 2)});
}

// Checks the arguments common to attention and its gradient.
template <class Args>
void expect_attention(const Args& args) {
  const HeadLayout& heads = args.heads;
  expect_heads(heads);
  expect_act({"qkv", args.qkv}, 2);
  const int64_t n = args.qkv.dim(0);
  expect_shape({"qkv", args.qkv}, {n, heads.qkv_width()});
  expect({"cu_seqlens", args.cu_seqlens}, DType::kI32, {args.cu_seqlens.count()});
  TOKAMAK_CHECK(args.cu_seqlens.count() >= 1, "cu_seqlens is ", args.cu_seqlens.text());
  expect({"out", args.out}, args.qkv.dtype(), {n, heads.q_width()});
  expect({"lse", args.lse}, DType::kF32, {heads.q_heads, n});
  TOKAMAK_CHECK(n == 0 || args.max_length > 0, "max_length ", args.max_length);
  TOKAMAK_CHECK(args.window >= 0 && args.cap >= 0, "window ", args.window, ", cap ", args.cap);
  if (args.tables) expect_tables(args.tables, args.cu_seqlens);
}

// Checks the arguments common to both cache operations.
template <class Args>
void expect_cached(const Args& args) {
  const HeadLayout& heads = args.heads;
  const CachedSequences& s = args.sequences;
  expect_heads(heads);
  expect_act({"qkv", args.qkv}, 2);
  expect_shape({"qkv", args.qkv}, {args.qkv.dim(0), heads.qkv_width()});
  expect_rank({"cache", args.cache}, 4);
  expect({"cache", args.cache}, args.qkv.dtype(),
         {args.cache.dim(0), 2 * heads.kv_heads, args.cache.dim(2), heads.head_dim});
  expect({"slots", s.slots}, DType::kI32, {s.slots.count()});
  expect({"cached", s.cached}, DType::kI32, {s.slots.count()});
  expect({"cu_seqlens", s.cu_seqlens}, DType::kI32, {s.slots.count() + 1});
}

// Multiply-adds of the scores if every document had the maximum length. (Only the device knows the true lengths.)
template <class Args>
double attention_products(const Args& args) {
  return double(args.qkv.dim(0)) * mean_attended(args.max_length, args.window) * double(args.heads.q_width());
}

inline double product(std::initializer_list<int64_t> factors) {
  double out = 1;
  for (const int64_t factor : factors) out *= double(factor);
  return out;
}

}  // namespace tokamak
