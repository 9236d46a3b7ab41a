// The end of a step: the decision to clip or skip, from the reduced sums, and AdamW on a flat shard in one pass over
// memory. The formulas are in backend/formulas.h.
#include <algorithm>
#include <array>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/formulas.h"
#include "base/rng_formulas.h"

namespace tokamak {

namespace {

template <class Moment>
struct Arrays {
  float* master;
  Moment* exp_avg;
  Moment* exp_avg_sq;
  const float* grad;
  bf16* weights;   // or null
  float* updates;  // or null; or grad
  RoundingStream rounding;
};

constexpr int kWords = RoundingStream::kWords;
constexpr int64_t kTile = 256;  // Philox blocks per call: each round is a loop over all of them, which vectorises

// The words of `count` <= kTile blocks, as rounding_words() has them.
void draw_blocks(const RoundingStream& stream, uint64_t first, int64_t count, uint32_t* words) {
  uint32_t c0[kTile], c1[kTile], c2[kTile], c3[kTile];
  const auto step_low = static_cast<uint32_t>(stream.step), step_high = static_cast<uint32_t>(stream.step >> 32);
  for (int64_t b = 0; b < count; ++b) {
    const uint64_t block = first + static_cast<uint64_t>(b);
    c0[b] = static_cast<uint32_t>(block);
    c1[b] = static_cast<uint32_t>(block >> 32);
    c2[b] = step_low;
    c3[b] = step_high;
  }
  std::array<uint32_t, 2> key = stream.key;
  for (int round = 0; round < rng_formulas::kPhiloxRounds; ++round) {
#pragma omp simd
    for (int64_t b = 0; b < count; ++b) rng_formulas::philox_round(c0[b], c1[b], c2[b], c3[b], key);
    rng_formulas::bump_key(key);
  }
#pragma omp simd
  for (int64_t b = 0; b < count; ++b) {
    words[kWords * b] = c0[b];
    words[kWords * b + 1] = c1[b];
    words[kWords * b + 2] = c2[b];
    words[kWords * b + 3] = c3[b];
  }
}

template <class Moment, bool kCopies, bool kKeepsUpdates>
void update_as(const Arrays<Moment>& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay,
               float scale) {
  auto* master = to.master;
  auto* exp_avg = to.exp_avg;
  auto* exp_avg_sq = to.exp_avg_sq;
  const auto* grad = to.grad;
  auto* weights = to.weights;
  auto* updates = to.updates;
  constexpr bool kRounds = std::is_same_v<Moment, bf16>;
  uint32_t drawn[kRounds ? kTile * kWords : 1];
  for (int64_t first = begin, last = end; first < end; first = last) {
    const uint32_t* words = drawn;  // words of the elements from `first` on
    if constexpr (kRounds) {
      const uint64_t index = to.rounding.first + static_cast<uint64_t>(first);
      const auto lane = static_cast<int64_t>(index % kWords);  // a slice may begin inside a block
      last = std::min(end, first + kTile * kWords - lane);
      draw_blocks(to.rounding, index / kWords, (lane + last - first + kWords - 1) / kWords, drawn);
      words += lane;
    }
#pragma omp simd
    for (int64_t i = first; i < last; ++i) {
      const float before = master[i];
      float m = to_float(exp_avg[i]), v = to_float(exp_avg_sq[i]);
      const float after = adamw_update(k, decay, before, m, v, scale * grad[i]);
      if constexpr (kRounds) {
        exp_avg[i] = round_exp_avg(m, words[i - first]);
        exp_avg_sq[i] = round_exp_avg_sq(v, words[i - first]);
      } else {
        exp_avg[i] = m;
        exp_avg_sq[i] = v;
      }
      master[i] = after;
      if constexpr (kCopies) weights[i] = from_float<bf16>(after);  // constructing a bf16 prevents vectorisation
      if constexpr (kKeepsUpdates) updates[i] = after - before;
    }
  }
}

template <class Moment>
void update(const Arrays<Moment>& to, const AdamWConstants& k, int64_t begin, int64_t end, float decay, float scale) {
  const bool copies = to.weights != nullptr, keeps = to.updates != nullptr;
  const auto how = copies ? (keeps ? update_as<Moment, true, true> : update_as<Moment, true, false>)
                          : (keeps ? update_as<Moment, false, true> : update_as<Moment, false, false>);
  how(to, k, begin, end, decay, scale);
}

template <class Moment>
void take_step(const AdamW& args) {
  const Arrays<Moment> arrays{args.master.as<float>(),
                              args.exp_avg.as<Moment>(),
                              args.exp_avg_sq.as<Moment>(),
                              args.grad.as<float>(),
                              args.weights ? args.weights.as<bf16>() : nullptr,
                              args.updates ? args.updates.as<float>() : nullptr,
                              rounding_stream_of(args.rounding)};
  if (args.control.as<float>()[kApply] == 0.0f) {
    if (arrays.updates != nullptr) std::fill_n(arrays.updates, args.master.count(), 0.0f);
    return;
  }
  const AdamWConstants k = constants_of(args);
  const float scale = args.control.as<float>()[kGradScale];
  parallel_blocks(args.master.count(), [&](int64_t begin, int64_t end) {
    for (int piece = 0; begin < end; begin = std::min(end, k.end[piece])) {
      piece = piece_of(k, begin, piece);
      update(arrays, k, begin, std::min(end, k.end[piece]), k.decay[piece], scale);
    }
  });
}

}  // namespace

void CpuOps::do_control_step(Stream&, const ControlStep& args) {
  decide_step(args.sums.as<double>(), args.max_norm, args.control.as<float>());
}

void CpuOps::do_adamw(Stream&, const AdamW& args) {
  with_act_type(args.exp_avg.dtype(), [&]<class Moment>(Moment) { take_step<Moment>(args); });
}

}  // namespace tokamak
