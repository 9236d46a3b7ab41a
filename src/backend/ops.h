// THE contract of every operation, and the one list of them (TOKAMAK_OPS). Each public method checks its arguments,
// shows the call to the device's observers and calls the backend's do_ method. The CPU backend is the specification.
//
// Conventions. N tokens (B x T flattened), C hidden, I intermediate, Hq / Hkv query / key-value heads, D head size, V
// vocabulary. "act" is the compute dtype, bf16 or f32, the same for all act tensors of a call. Tensors are contiguous.
// Sums, statistics, exponentials and losses are computed in f32 or wider for any dtype; results are rounded once. An
// output is overwritten unless its comment says "accumulated". Inputs and outputs do not overlap unless stated. Results
// do not depend on the number of threads.
//
// Longer than 400 lines because the contract has one place.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backend/device.h"
#include "tensor/tensor.h"

namespace tokamak {

enum class Transpose { kNo, kYes };
enum class Write { kOverwrite, kAccumulate };
enum class Rotation { kForward, kInverse };
// Who chooses an algorithm. kTuned: timing may (runtime.autotune), so ranks may differ in the last bits. kFixed: the
// library alone, equally on all ranks.
enum class AlgorithmChoice { kTuned, kFixed };

// C = alpha op(A) op(B) [+ bias to each row] [+ residual_scale residual] [+ C]
struct Gemm {
  Tensor a;         // (M, K), or (K, M) if trans_a             f32 or bf16
  Tensor b;         // (K, N), or (N, K) if trans_b             dtype of a
  Tensor c;         // (M, N)                                   f32, or dtype of a; accumulated if write says so
  Tensor residual;  // (M, N), may be empty                     dtype of c; not c itself: see cuda/gemm/gemm.cc
  Tensor bias;      // (N), may be empty                        dtype of c
  Transpose trans_a = Transpose::kNo;
  Transpose trans_b = Transpose::kNo;
  Write write = Write::kOverwrite;  // kAccumulate: c in f32, without residual and bias
  const char* label = "";           // "qkv forward": names this GEMM in profiles and traces
  float alpha = 1;                  // not 1: kOverwrite, K > 0 and no bias
  float residual_scale = 1;         // not 0; not 1: with a residual, without bias, K > 0
  AlgorithmChoice choice = AlgorithmChoice::kTuned;
};

// out[n] = scale table[ids[n]]
struct Embedding {
  Tensor ids;    // (N) i32, each in [0, V)
  Tensor table;  // (V, C) act
  Tensor out;    // (N, C) act
  float scale = 1;
};

// dtable[ids[n]] += scale dout[n], in order of n
struct EmbeddingBackward {
  Tensor ids;     // (N) i32
  Tensor dout;    // (N, C) act
  Tensor dtable;  // (V, C) f32, accumulated
  float scale = 1;
};

// rstd = 1 / sqrt(mean(x^2) + eps);  y = x rstd (offset + weight) [+ onto]         (Zhang and Sennrich 2019)
struct RmsNorm {
  Tensor x;       // (N, C) act
  Tensor weight;  // (C) act
  Tensor y;       // (N, C) act
  Tensor rstd;    // (N) f32
  float eps = 1e-5f;
  Tensor onto = {};  // (N, C) act, may be empty: the residual stream; may be y itself
  float offset = 0;  // of the weight, added in f32; 1 in Gemma
};

// With g = dy * (offset + weight) and x the normalised input:
// dx = rstd (g - x rstd^2 mean(g x)) [+ dresidual];  dweight += sum over n of dy x rstd
struct RmsNormBackward {
  Tensor dy;         // (N, C) act
  Tensor x;          // (N, C) act
  Tensor weight;     // (C) act
  Tensor rstd;       // (N) f32
  Tensor dresidual;  // (N, C) act, may be empty: the gradient through the skip connection; may be dx itself
  Tensor dx;         // (N, C) act; may be dy itself
  Tensor dweight;    // (C) f32, accumulated
  Tensor y;          // (N, C) act, may be empty: RmsNorm::y recomputed, the same bits; may be dy unless dx is
  float offset = 0;
};

// sums[c] += sum over n of x[n][c]: the gradient of a bias
struct ColumnSums {
  Tensor x;     // (N, C) act
  Tensor sums;  // (C) f32, accumulated
};

struct HeadLayout {
  int64_t q_heads = 0;   // Hq, a multiple of Hkv
  int64_t kv_heads = 0;  // Hkv
  int64_t head_dim = 0;  // D, even
  int64_t q_width() const { return q_heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  float scale() const { return static_cast<float>(1.0 / std::sqrt(double(head_dim))); }
};

// Rotates each query and key head in place, half against half (Su et al. 2021, in Hugging Face's layout). For i < D/2:
// (x_i, x_{i+D/2}) <- (x_i cos - x_{i+D/2} sin, x_{i+D/2} cos + x_i sin). kInverse takes -sin: the gradient, and the
// inverse rotation if cos^2 + sin^2 = 1 (a table may hold both times a factor).
struct Rope {
  Tensor qkv;        // (N, (Hq + 2 Hkv) D) act, in and out: query heads, key heads, value heads (untouched)
  Tensor positions;  // (N) i32, each in [0, P)
  Tensor table;      // (P, D) f32: cos in the first half of a row, sin in the second
  HeadLayout heads;
  Rotation rotation = Rotation::kForward;
};

// Normalises queries and keys as RmsNorm does, before Rope: rstd = 1 / sqrt(mean(x^2) + eps), out = x rstd (offset +
// weight), for x each query head and each key head (Henry et al. 2020, as in Qwen3), or a token's query heads together
// and its key heads together (as in OLMo 2, 2501.00656). Values are copied.
enum class HeadNorm { kEach, kTogether };
struct QkNorm {
  Tensor qkv;       // (N, (Hq + 2 Hkv) D) act
  Tensor q_weight;  // kEach: (D) act, of every query head; kTogether: (Hq D)
  Tensor k_weight;  // kEach: (D) act, of every key head; kTogether: (Hkv D)
  Tensor out;       // (N, (Hq + 2 Hkv) D) act; may be qkv itself
  Tensor rstd;      // f32; kEach: (N, Hq) of the query heads, then (N, Hkv) of the key heads; kTogether: (N), (N)
  HeadLayout heads;
  float eps = 1e-5f;
  HeadNorm over = HeadNorm::kEach;
  float offset = 0;
};

// As RmsNormBackward, of the same x. The gradient of the values is unchanged.
struct QkNormBackward {
  Tensor dqkv;       // (N, (Hq + 2 Hkv) D) act: on entry the gradient of QkNorm's out, on return of its qkv
  Tensor qkv;        // as in QkNorm: the input
  Tensor q_weight;   //
  Tensor k_weight;   //
  Tensor rstd;       //
  Tensor dq_weight;  // as q_weight, f32, accumulated
  Tensor dk_weight;  // as k_weight, f32, accumulated
  HeadLayout heads;
  HeadNorm over = HeadNorm::kEach;
  float offset = 0;
};

// The positions of documents in the tensors of attention. All layers and both passes need the same tables,
// computed once a micro-batch. Each row of `tables` has R entries: entry i < S is document i's, the others are empty
// documents at the end of all tokens. An offset is the number of elements before the document, where a token has
// `width` of them: offset_i = cu[min(i, S)] width; length_i = cu[i+1] - cu[i] for i < S, else 0
struct DocumentTables {
  // R i64 offsets each (little-endian), into tensors with a row per token: qkv, out, the keys alone, lse transposed.
  // Their widths are (Hq + 2 Hkv) D, Hq D, Hkv D and Hq.
  enum Offsets : int64_t { kQkvRows, kQueryRows, kKeyRows, kLseRows, kOffsets };
  static constexpr int64_t kRows = 2 * kOffsets + 1;  // of i32: the offsets, then one row of lengths

  Tensor cu_seqlens;  // (S + 1) i32, as in Attention
  Tensor tables;      // (kRows, R) i32, R > S
  HeadLayout heads;
};

// Causal softmax attention within each document, without materialising a T x T matrix (Dao et al. 2022).
// Query head h uses key-value head h / (Hq / Hkv). For tokens s <= t of one document, with s > t - window if there is
// a window: S = scale q_t . k_s, or with a cap cap tanh(scale q_t . k_s / cap); lse_t = log sum_s exp S;
// out_t = sum_s exp(S - lse_t) v_s
// In bf16 the weights exp(S - lse), and dS in backward, may be rounded to bf16 before their GEMMs.
struct Attention {
  Tensor qkv;         // (N, (Hq + 2 Hkv) D) act, queries and keys rotated
  Tensor cu_seqlens;  // (S + 1) i32: document d is [cu[d], cu[d+1]); cu[0] = 0, cu[S] = N; empty documents allowed
  Tensor out;         // (N, Hq D) act
  Tensor lse;         // (Hq, N) f32
  HeadLayout heads;
  float scale = 1.0f;      // usually 1 / sqrt(D)
  int64_t max_length = 0;  // upper bound of the documents' lengths
  Tensor tables = {};      // DocumentTables::tables of these documents and heads; may be empty: the same results
  int64_t window = 0;      // tokens that a token attends to, itself included; 0: all. From max_length on: as 0
  float cap = 0.0f;        // bound of the logits S; 0: none
};

struct AttentionBackward {
  Tensor qkv;         // as in Attention
  Tensor cu_seqlens;  //
  Tensor out;         //
  Tensor lse;         //
  Tensor dout;        // (N, Hq D) act
  Tensor dqkv;        // (N, (Hq + 2 Hkv) D) act; gradient with respect to the rotated queries and keys
  HeadLayout heads;
  float scale = 1.0f;
  int64_t max_length = 0;
  Tensor tables = {};
  int64_t window = 0;
  float cap = 0.0f;
};

// Generation. The KV cache of one layer holds the rotated keys and the values of active sequences. Each sequence has
// one row of it, its slot, with room for R positions: position p lies at p mod R. Sequence s has cached[s] cached
// tokens; its new tokens are [cu[s], cu[s+1]) of the batch. Token n has position cached[s] + n - cu[s]. All positions
// are below R, or else R is a multiple of kCacheTile and at least window - 1 + the new tokens of a sequence.
constexpr int64_t kCacheTile = 64;
struct CachedSequences {
  Tensor cu_seqlens;  // (S + 1) i32: cu[0] = 0, cu[S] = N; a sequence may have no new tokens
  Tensor slots;       // (S) i32: distinct
  Tensor cached;      // (S) i32
};

// Keys and values of the new tokens, copied to their positions.
struct CacheAppend {
  Tensor qkv;  // (N, (Hq + 2 Hkv) D) act, keys rotated
  CachedSequences sequences;
  Tensor cache;  // (slots, 2 Hkv, R, D) act, in and out: the keys of each head, then the values
  HeadLayout heads;
};

// As Attention, of the new tokens, over positions 0 to the token's or the last `window` of them. CacheAppend has stored
// the new tokens' own keys. If nothing is cached, Attention gives the same result faster.
struct CachedAttention {
  Tensor qkv;  // (N, (Hq + 2 Hkv) D) act; only the queries, rotated, are read
  CachedSequences sequences;
  Tensor cache;  // (slots, 2 Hkv, R, D) act
  Tensor out;    // (N, Hq D) act
  HeadLayout heads;
  float scale = 1.0f;
  int64_t max_new = 0;     // upper bound of new tokens per sequence
  int64_t max_length = 0;  // upper bound of cached and new tokens per sequence
  int64_t window = 0;      // as in Attention
  float cap = 0.0f;        // likewise
};

// out = g(gate) * up, g(x) = silu(x) = x / (1 + exp(-x)), or for GeGLU the gelu of base/math.h      (Shazeer 2020)
enum class Gate { kSilu, kGelu };
struct SwiGlu {
  Tensor gate_up;  // (N, 2 I) act: gate in the first half of a row, up in the second
  Tensor out;      // (N, I) act
  Gate gate = Gate::kSilu;
};

struct SwiGluBackward {
  Tensor gate_up;   // (N, 2 I) act
  Tensor dout;      // (N, I) act
  Tensor dgate_up;  // (N, 2 I) act; may be gate_up itself
  Tensor out;       // (N, I) act, may be empty: SwiGlu::out recomputed, the same bits; may be dout itself
  Gate gate = Gate::kSilu;
};

// Sums over the tokens of a step, all f64, in this order, so that one all-reduce suffices.
enum StepSum : int64_t { kSumLoss = 0, kSumZLoss = 1, kSumTargets = 2, kSumSquaredGradients = 3, kStepSums = 4 };

// x = cap tanh(x / cap)
struct SoftCap {
  Tensor x;  // (n) f32 or bf16, in and out
  float cap = 0.0f;
};

// The head: logits = hidden weight^T, in chunks of rows, never materialised whole; with a cap, SoftCap of these. With
// Z = sum exp(logits) and target
// t (rows with target -1 are ignored): loss_n = log Z - logits_t, z_n = z_weight (log Z)^2 (Chowdhery et al. 2022).
// dlogits = softmax (1 + 2 z_weight log Z) - onehot(t): the gradient of the SUM of loss_n + z_n, without any division.
// In bf16 the logits may be rounded to bf16 (HeadChunk::logits). Statistics, loss and gradient stay f32, of the rounded
// logits. The rounding moves loss_n by at most 2^-8 (max |logit| + |logit_t|), and a probability by that fraction.
struct LinearCrossEntropy {
  Tensor hidden;      // (N, C) act
  Tensor weight;      // (V, C) act
  Tensor targets;     // (N) i32 in [0, V), or -1
  Tensor token_loss;  // (N) f32: loss_n, 0 for ignored rows
  Tensor sums;        // (kStepSums) f64: kSumLoss, kSumZLoss, kSumTargets accumulated
  Tensor dhidden;     // (N, C) act; empty: forward only, no gradients
  Tensor dweight;     // (V, C) f32, written as `write` says; empty exactly if dhidden is
  Write write = Write::kAccumulate;
  float z_weight = 0.0f;
  float cap = 0.0f;  // bound of the logits; 0: none
  // (N) f32: 1 where the target has the largest logit, of equal ones the first; else 0. Empty: not asked, as with
  // gradients, whose pass overwrites the logits.
  Tensor greedy = {};
};

// The inputs of AdamW that depend on the whole step, computed on the device; all f32, in this order.
enum StepControl : int64_t {
  kGradScale = 0,
  kApply = 1,
  kGradNorm = 2,
  kMeanLoss = 3,
  kMeanZLoss = 4,
  kStepControls = 5
};

// From globally reduced sums: norm = sqrt(squared gradients) / targets. With unit_sums the squared gradients are what
// the clipping of each unit leaves: the sum of clip^2 squares, clip as in ClipUnit.
// kGradScale = min(1, max_norm / (norm + 1e-6)) / targets (max_norm 0: 1 / targets). kMeanLoss and kMeanZLoss are
// per target. kApply = 1, or 0 (and kGradScale 0) if norm, kMeanLoss or kMeanZLoss is not finite in f32, or if
// kMeanLoss or norm is above its limit.
struct StepLimits {
  float loss = std::numeric_limits<float>::infinity();
  float norm = std::numeric_limits<float>::infinity();
};
struct ControlStep {
  Tensor sums;     // (kStepSums) f64
  Tensor control;  // (kStepControls) f32
  float max_norm = 0.0f;
  StepLimits limits = {};
  Tensor unit_sums = {};  // (U, kStepSums) f64, may be empty: kSumSquaredGradients of each unit
  float max_unit_norm = 0.0f;
};

// A unit's gradient x = clip x, clip = min(1, max_norm / (norm + 1e-6)), norm = sqrt(squared gradients) / targets; 1 if
// norm is not finite.
struct ClipUnit {
  Tensor x;          // (n) f32, in and out
  Tensor unit_sums;  // (kStepSums) f64: kSumSquaredGradients of the unit
  Tensor sums;       // (kStepSums) f64: kSumTargets
  float max_norm = 0.0f;
};

// How state in bf16 is rounded at random (base/bf16.h): rounding to nearest would lose every change below 2^-9 of a
// value. Element i has index e = first + i among all elements of the run on any rank. It takes word e % 4 of the
// Philox4x32-10 block with counter (e / 4, step), 64 bits each, and key mix64(seed ^ name_hash(NAME)), NAME being the
// operation's. So its bits do not depend on how calls divide the elements.
struct StochasticRounding {
  uint64_t seed = 0;
  int64_t first = 0;
  int64_t step = 0;  // draws of equal steps are equal
};

// Decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2, in torch.optim.AdamW's arrangement). With
// g = kGradScale grad: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// master = master (1 - lr weight_decay) - lr (m / bias1) / (sqrt(v / bias2) + eps), bias_i = 1 - b_i^t.
// Nothing changes if kApply is 0. Groups differ in weight_decay alone. `updates`, if given, is the change of master,
// rounded to f32.
// Moments may be bf16. Then m and v are computed in f32 from the stored ones, and the master takes those f32 values.
// Then each is rounded at random: m by the low half of the element's word, v by the high half; NAME is "adamw".
struct AdamW {
  // The elements from the previous group's `end` (0 for the first group) to its own `end`; may be empty.
  struct Group {
    int64_t end = 0;
    double weight_decay = 0;
  };
  static constexpr size_t kMostGroups = 8;

  Tensor master;                     // (n) f32, in and out
  Tensor exp_avg;                    // (n) f32 or bf16, in and out: m
  Tensor exp_avg_sq;                 // (n) dtype of exp_avg, in and out: v
  Tensor grad;                       // (n) f32
  Tensor weights;                    // (n) bf16: master rounded; may be empty
  Tensor control;                    // (kStepControls) f32
  std::vector<Group> groups;         // ascending; the last one ends at n
  Tensor updates = {};               // (n) f32, may be empty; may be grad itself
  StochasticRounding rounding = {};  // used if the moments are bf16
  // In double: 1 - beta2 from an f32 beta2 is wrong in the fifth digit.
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, bias1 = 1, bias2 = 1;
};

enum class Nesterov { kNo, kYes };

// The momentum of a matrix, and the direction that Muon orthogonalises (torch.optim.Muon: torch/optim/_muon.py). With
// g = kGradScale grad: m = mu m + (1 - mu) g; direction = (1 - mu) g + mu m if nesterov, else m. If kApply is 0, m does
// not change and direction is 0. All is computed in f32 from the stored m. A bf16 m is then rounded at random, by the
// low half of the element's word; NAME is "muon".
struct MuonMomentum {
  Tensor grad;       // (n) f32
  Tensor momentum;   // (n) f32 or bf16, in and out: m
  Tensor direction;  // (n) f32 or bf16
  Tensor control;    // (kStepControls) f32
  double mu = 0;
  Nesterov nesterov = Nesterov::kYes;
  StochasticRounding rounding = {};  // used if momentum is bf16
};

// x = x / max(margin norm, 1e-7); norm = |x|, the Frobenius norm of the stored values, summed in f64
struct Normalize {
  Tensor x;     // (M, N) f32 or bf16, in and out
  Tensor norm;  // (1) f64
  double margin = 1;
};

// master = master (1 - decay) - rate direction. Nothing changes if kApply is 0. `updates`, if given, is the change of
// master, rounded to f32.
struct MuonUpdate {
  Tensor direction;     // (n) f32 or bf16
  Tensor master;        // (n) f32, in and out
  Tensor weights;       // (n) bf16: master rounded; may be empty
  Tensor control;       // (kStepControls) f32
  Tensor updates = {};  // (n) f32, may be empty
  double rate = 0, decay = 0;
};

// sums[kSumSquaredGradients] += sum of x^2, over a fixed partition and in a fixed order
struct SumSquares {
  Tensor x;     // (n) f32
  Tensor sums;  // (kStepSums) f64, accumulated
};

// Statistics of a tensor; all f64, in this order. Non-finite values are counted and excluded from all else. If no
// finite value exists, the first three are inf, -inf and 0.
enum Statistic : int64_t { kMin = 0, kMax = 1, kSquares = 2, kNonFinite = 3, kStatistics = 4 };
// The count of values by magnitude: [0] counts zeros, [b] those with floor(log2 |x|) = kLowestMagnitude + b - 1. Bin
// 1 also counts smaller values, and the last bin greater ones.
inline constexpr int64_t kMagnitudeBins = 64;
inline constexpr int kLowestMagnitude = -48;
struct Statistics {
  Tensor x;                // (n) f32 or bf16
  Tensor out;              // (kStatistics) f64
  Tensor magnitudes = {};  // (kMagnitudeBins) f64, may be empty
  Tensor divisor = {};     // (1) f64, may be empty: statistics of x times its reciprocal, both in f32, as AdamW's g
};

// sum += sum over i of (2 i + 1) bits(x_i), mod 2^64. bits() is an element's pattern, as an unsigned integer of its
// size. A change of one element always changes the sum, because an odd factor has an inverse.
struct Checksum {
  Tensor x;    // (n) f32 or bf16
  Tensor sum;  // (2) i32: the low and the high half, accumulated as one number
};

// dst = src, or dst += src (dst f32)
struct Cast {
  Tensor src;  // (n) f32 or bf16
  Tensor dst;  // (n) f32 or bf16
  Write write = Write::kOverwrite;
};

// average += weight (x - average), in f32: a step of a moving average, or with weight 1/k of the mean of k tensors.
// Both tensors may be in pinned host memory.
struct Average {
  Tensor x;           // (n) f32
  Tensor average;     // (n) f32, in and out
  double weight = 0;  // from 0 to 1
};

// x[i] = 0 where x[i] is not finite
struct ZeroNonFinite {
  Tensor x;  // (n) f32, in and out
};

struct Fill {
  Tensor x;  // f32, bf16, f64 or i32
  double value = 0;
};

// x[i] = mean + std z(seed, name, first + i), z standard normal: base/rng.h RandomStream, bit for bit on every backend
struct RandomNormal {
  Tensor x;  // (n) f32
  uint64_t seed = 0;
  std::string name;
  int64_t first = 0;
  double mean = 0, std = 1;
};

// THE list of operations: V(method, arguments).
#define TOKAMAK_OPS(V)                        \
  V(gemm, Gemm)                               \
  V(embedding, Embedding)                     \
  V(embedding_backward, EmbeddingBackward)    \
  V(rmsnorm, RmsNorm)                         \
  V(rmsnorm_backward, RmsNormBackward)        \
  V(column_sums, ColumnSums)                  \
  V(qk_norm, QkNorm)                          \
  V(qk_norm_backward, QkNormBackward)         \
  V(rope, Rope)                               \
  V(document_tables, DocumentTables)          \
  V(attention, Attention)                     \
  V(attention_backward, AttentionBackward)    \
  V(cache_append, CacheAppend)                \
  V(cached_attention, CachedAttention)        \
  V(swiglu, SwiGlu)                           \
  V(swiglu_backward, SwiGluBackward)          \
  V(soft_cap, SoftCap)                        \
  V(linear_cross_entropy, LinearCrossEntropy) \
  V(control_step, ControlStep)                \
  V(clip_unit, ClipUnit)                      \
  V(adamw, AdamW)                             \
  V(muon_momentum, MuonMomentum)              \
  V(normalize, Normalize)                     \
  V(muon_update, MuonUpdate)                  \
  V(sum_squares, SumSquares)                  \
  V(statistics, Statistics)                   \
  V(checksum, Checksum)                       \
  V(cast, Cast)                               \
  V(average, Average)                         \
  V(zero_non_finite, ZeroNonFinite)           \
  V(fill, Fill)                               \
  V(random_normal, RandomNormal)

// Declares the methods of a backend.
#define TOKAMAK_OVERRIDE_OP(name, Args) void do_##name(Stream& stream, const Args& args) override;

// The largest shapes of a run; they determine the size of the shared scratch memory. All empty: GEMMs alone.
struct Workload {
  int64_t tokens = 0;  // N of a micro-batch
  int64_t hidden = 0;  // C
  int64_t vocab = 0;   // V
  HeadLayout heads;
  int64_t max_length = 0;  // T
  DType compute = DType::kBF16;
  int64_t cached_tokens = 0;           // N of cached attention with few new tokens per sequence; 0: none
  std::vector<int64_t> windows = {0};  // of attention, each that occurs
  HeadNorm head_norm = HeadNorm::kEach;
};

// A chunk of the head's logits in linear_cross_entropy.
struct HeadChunk {
  int64_t rows = 0;
  DType logits = DType::kF32;  // f32, or act
};

class Ops {
 public:
  virtual ~Ops() = default;

  // Scratch memory: the caller plans it and binds it before the first operation that needs it.
  virtual int64_t workspace_bytes(const Workload& workload) const = 0;
  void bind_workspace(Tensor workspace) { workspace_ = workspace; }

  // The chunk of the head's GEMMs in linear_cross_entropy.
  virtual HeadChunk head_chunk(int64_t tokens, int64_t vocab, DType act) const = 0;

  // Attention may read this many rows behind its N tokens and multiply them by zero, so they must be finite. The plan
  // of qkv, out, lse and dout adds them, and no operation writes them. 0: attention reads no such rows.
  virtual int64_t rows_behind_attention() const = 0;

  // The R of the DocumentTables that attention may read, for micro-batches up to this size. Attention reads none if all
  // documents have the maximum length, or if there are more than R - 1 documents. 0: attention reads no tables.
  virtual int64_t document_table_entries(const Workload& workload) const = 0;

  // Up to so many rows, a GEMM's result for a row has the same bits whatever the other rows are. Unlimited where such
  // bits are not promised at all.
  virtual int64_t rows_with_equal_bits() const { return std::numeric_limits<int64_t>::max(); }

#define TOKAMAK_PUBLIC_OP(name, Args) void name(Stream& stream, const Args& args);
  TOKAMAK_OPS(TOKAMAK_PUBLIC_OP)
#undef TOKAMAK_PUBLIC_OP

 protected:
#define TOKAMAK_VIRTUAL_OP(name, Args) virtual void do_##name(Stream& stream, const Args& args) = 0;
  TOKAMAK_OPS(TOKAMAK_VIRTUAL_OP)
#undef TOKAMAK_VIRTUAL_OP

  Tensor workspace() const { return workspace_; }

 private:
  Tensor workspace_;
};

}  // namespace tokamak
