// Shared by attention forward and backward: a worker's share of the workspace, and the loop over independent tasks. A
// task is a document and a head. Its result depends on no other task, hence not on the number of workers.
#pragma once

#include <omp.h>

#include <algorithm>
#include <type_traits>

#include "backend/attended.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/simd.h"
#include "base/math.h"
#include "base/parallel_for.h"

namespace tokamak {

inline constexpr int64_t kAttentionBlock = 64;  // tokens of a tile, both queries and keys

inline constexpr float kLn2 = 0.693147180559945309f;

// Which queries of a tile see which of its keys: query t sees key s if s <= t and s > t - window. Positions are those
// of the document; `window` is 0 if there is none.
struct TileMask {
  enum class Hides { kNothing, kLater, kLaterAndEarlier };

  int64_t first_query, queries, first_key, keys;
  int64_t window;  // below the document's length, so that positions minus it fit into 32 bits

  Hides hides() const {
    if (window > 0 && first_key <= first_query + queries - 1 - window) return Hides::kLaterAndEarlier;
    return first_key + keys > first_query + 1 ? Hides::kLater : Hides::kNothing;
  }
  // The first tile of keys that a query from `query` on sees.
  static int64_t first_tile(int64_t query, int64_t window) {
    return window == 0 ? 0 : std::max<int64_t>(query - window + 1, 0) / kAttentionBlock * kAttentionBlock;
  }
};

// The keys of a tile that kLanes queries see. `ahead`: the first of these queries' position minus the first key's.
template <TileMask::Hides kHides>
class SeenKeys {
 public:
  SeenKeys(int64_t ahead, const TileMask& mask)
      : keys_(mask.keys),
        ahead_(ahead),
        last_(simd::lane_numbers() + static_cast<int32_t>(ahead)),
        before_(last_ - static_cast<int32_t>(mask.window)) {}

  // No query sees a key from here on.
  int64_t end() const {
    return kHides == TileMask::Hides::kNothing ? keys_ : std::min<int64_t>(keys_, ahead_ + simd::kLanes);
  }
  // `x` in the lanes of queries that see key `s` of the tile, `hidden` in the others.
  simd::Vec pick(int64_t s, simd::Vec x, simd::Vec hidden) const {
    if constexpr (kHides != TileMask::Hides::kNothing) x = last_ < static_cast<int32_t>(s) ? hidden : x;
    if constexpr (kHides == TileMask::Hides::kLaterAndEarlier) x = before_ >= static_cast<int32_t>(s) ? hidden : x;
    return x;
  }

 private:
  int64_t keys_, ahead_;
  simd::Ints last_, before_;  // of each query: the last key that it sees, and the last one that it sees no more
};

// Calls run with the constant that `hides` is.
template <class Run>
void with_mask(TileMask::Hides hides, const Run& run) {
  using enum TileMask::Hides;
  if (hides == kNothing) return run(std::integral_constant<TileMask::Hides, kNothing>());
  if (hides == kLater) return run(std::integral_constant<TileMask::Hides, kLater>());
  run(std::integral_constant<TileMask::Hides, kLaterAndEarlier>());
}

// How products of queries and keys become scores, in units of ln 2: scale x, or cap tanh(scale x / cap).
class ScoreScale {
 public:
  ScoreScale(float scale, float cap)
      : factor_(cap > 0 ? 1.0f : scale * kLog2E),
        limit_(cap * kLog2E),
        inner_(cap > 0 ? 2 * kLog2E * scale / cap : 0.0f) {}

  bool capped() const { return limit_ > 0; }
  // Caps products, if there is a cap. factor() then turns them into scores.
  void cap(float* products, int64_t count) const {
    if (!capped()) return;
    for (int64_t i = 0; i < count; i += simd::kLanes) simd::store(products + i, capped(simd::load(products + i)));
  }
  float factor() const { return factor_; }
  simd::Vec score(simd::Vec product) const { return capped() ? capped(product) : product * factor_; }
  // The derivative of capped() by scale x.
  simd::Vec slope(simd::Vec score) const { return 1.0f - score / limit_ * (score / limit_); }

 private:
  simd::Vec capped(simd::Vec x) const {
    x *= inner_;
    const simd::Vec within = x > 126.0f ? simd::splat(126.0f) : x;  // of exp2
    return limit_ - 2.0f * limit_ / (simd::exp2(within) + 1.0f);
  }

  float factor_, limit_, inner_;
};

// The documents of a call, validated.
struct Documents {
  const int32_t* begins;
  int64_t count;

  Documents(const Tensor& cu_seqlens, int64_t tokens, int64_t max_length)
      : begins(cu_seqlens.as<int32_t>()), count(cu_seqlens.count() - 1) {
    TOKAMAK_CHECK(begins[0] == 0 && begins[count] == tokens, "documents cover [", begins[0], ", ", begins[count],
                  ") of ", tokens, " tokens");
    for (int64_t d = 0; d < count; ++d) {
      TOKAMAK_CHECK(begins[d] <= begins[d + 1] && begins[d + 1] - begins[d] <= max_length, "document ", d, " is [",
                    begins[d], ", ", begins[d + 1], "), max_length ", max_length);
    }
  }
};

// Splits a worker's memory into aligned pieces. Without memory it only counts bytes.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* take(int64_t count) {
    T* piece = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += simd::round_up(count * static_cast<int64_t>(sizeof(T)), 256);
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* memory_;
  int64_t used_ = 0;
};

// Calls task(document, head, memory) for every pair, on one worker per thread, as far as the workspace suffices.
template <class Task>
void for_each_task(int64_t documents, int64_t heads, int64_t worker_bytes, const Tensor& workspace, const Task& task) {
  const int64_t tasks = documents * heads;
  if (tasks == 0) return;
  std::byte* memory = scratch<std::byte>(workspace, worker_bytes);
  const int64_t room = workspace.bytes() / worker_bytes;
  const auto workers = static_cast<int>(std::min<int64_t>({thread_count(), room, tasks}));
#pragma omp parallel for schedule(dynamic, 1) num_threads(workers)
  for (int64_t i = 0; i < tasks; ++i) {
    task(i / heads, i % heads, memory + omp_get_thread_num() * worker_bytes);
  }
}

}  // namespace tokamak
