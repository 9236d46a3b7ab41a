// Sums over whole tensors, and Normalize. The number of elements fixes the partition, and the parts are added in order
// in f64, so the result does not depend on the threads.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/formulas.h"

namespace tokamak {
namespace {

constexpr int64_t kMaxParts = 256;
constexpr int64_t kMinPart = 16384;

int64_t part_size(int64_t count) {
  const int64_t even = (count + kMaxParts - 1) / kMaxParts;
  return (even + kMinPart - 1) / kMinPart * kMinPart;
}

// Calls part(begin, end) for each part of [0, count) in parallel, then merge(result) for each result in order.
template <class Result, class Part, class Merge>
void reduce_in_order(int64_t count, const Part& part, const Merge& merge) {
  const int64_t size = part_size(count), parts = size > 0 ? (count + size - 1) / size : 0;
  std::array<Result, kMaxParts> results;
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      results[p] = part(p * size, std::min(count, (p + 1) * size));
    }
  });
  for (int64_t p = 0; p < parts; ++p) merge(results[p]);
}

template <class T>
double sum_of_squares_f64(const T* x, int64_t count) {
  const auto piece = [](const T* from, int64_t length) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < length; ++i) {
      const double v = to_float(from[i]);  // in f32 the square of a large gradient would overflow
      sum += v * v;
    }
    return sum;
  };
  const auto part = [=](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t at = begin; at < end; at += kMinPart) sum += piece(x + at, std::min(kMinPart, end - at));
    return sum;
  };
  double total = 0;
  reduce_in_order<double>(count, part, [&](double sum) { total += sum; });
  return total;
}

struct Health {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  double squares = 0;
  int64_t non_finite = 0;

  void add(const Health& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    squares += other.squares;
    non_finite += other.non_finite;
  }
};

// The Statistics of x * scale, without magnitudes.
template <class T>
Health health_of(const T* x, int64_t count, float scale) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float min = kInf, max = -kInf;
  double squares = 0;
  int32_t finite = 0;
#pragma omp simd reduction(min : min) reduction(max : max) reduction(+ : squares, finite)
  for (int64_t i = 0; i < count; ++i) {
    const float v = scale * to_float(x[i]);
    const bool ok = std::abs(v) < kInf;  // false for NaN
    const float low = ok ? v : kInf, high = ok ? v : -kInf, value = ok ? v : 0.0f;
    min = low < min ? low : min;
    max = high > max ? high : max;
    squares += double(value) * value;
    finite += ok ? 1 : 0;
  }
  return {min, max, squares, count - finite};
}

using Magnitudes = std::array<int64_t, kMagnitudeBins>;

// Counts the magnitudes of x * scale; `count` is at most kMinPart. Neighbours are often equal. So each of four has
// counters of its own, and no increment waits for the one before it.
template <class T>
void count_magnitudes(const T* x, int64_t count, float scale, Magnitudes& counts) {
  constexpr int64_t kWays = 4;
  std::array<uint8_t, kMinPart> bins;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    bins[i] = static_cast<uint8_t>(magnitude_bin(scale * to_float(x[i])));
  }
  uint32_t ways[kWays][kMagnitudeBins + 1] = {};  // the last: not finite
  const int64_t whole = count / kWays * kWays;
  for (int64_t i = 0; i < whole; i += kWays) {
    for (int64_t way = 0; way < kWays; ++way) ++ways[way][bins[i + way]];
  }
  for (int64_t i = whole; i < count; ++i) ++ways[0][bins[i]];
  for (size_t bin = 0; bin < counts.size(); ++bin) {
    for (const auto& way : ways) counts[bin] += way[bin];
  }
}

struct Summary {
  Health health;
  Magnitudes magnitudes{};  // if asked for
};

// The checksum of elements first, first + 1, ... `count` is at most kMinPart, so that the products of 32-bit factors
// are exact.
template <class Bits>
uint64_t checksum_of(const Bits* x, int64_t first, int64_t count) {
  uint64_t sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = x[i];
    sum += bits;
    weighted += bits * static_cast<uint32_t>(i);
  }
  return (2 * static_cast<uint64_t>(first) + 1) * sum + 2 * weighted;
}

}  // namespace

void CpuOps::do_sum_squares(Stream&, const SumSquares& args) {
  args.sums.as<double>()[kSumSquaredGradients] += sum_of_squares_f64(args.x.as<float>(), args.x.count());
}

void CpuOps::do_normalize(Stream&, const Normalize& args) {
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    T* x = args.x.as<T>();
    const double norm = std::sqrt(sum_of_squares_f64(x, args.x.count()));
    *args.norm.as<double>() = norm;
    const float factor = normalizing_factor(norm, args.margin);
    parallel_blocks(args.x.count(), [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) x[i] = from_float<T>(factor * to_float(x[i]));
    });
  });
}

void CpuOps::do_statistics(Stream&, const Statistics& args) {
  const float scale = reciprocal(args.divisor ? args.divisor.as<double>() : nullptr);
  const bool counts = static_cast<bool>(args.magnitudes);
  Summary total;
  const auto merge = [&](const Summary& part) {
    total.health.add(part.health);
    for (size_t bin = 0; bin < part.magnitudes.size(); ++bin) total.magnitudes[bin] += part.magnitudes[bin];
  };
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* x = args.x.as<T>();
    const auto part = [=](int64_t begin, int64_t end) {
      Summary sum;
      for (int64_t at = begin; at < end; at += kMinPart) {
        const int64_t count = std::min(kMinPart, end - at);
        sum.health.add(health_of(x + at, count, scale));
        if (counts) count_magnitudes(x + at, count, scale, sum.magnitudes);
      }
      return sum;
    };
    reduce_in_order<Summary>(args.x.count(), part, merge);
  });
  auto* out = args.out.as<double>();
  out[kMin] = total.health.min;
  out[kMax] = total.health.max;
  out[kSquares] = total.health.squares;
  out[kNonFinite] = double(total.health.non_finite);
  if (!counts) return;
  auto* magnitudes = args.magnitudes.as<double>();
  for (size_t bin = 0; bin < total.magnitudes.size(); ++bin) {
    magnitudes[bin] = double(total.magnitudes[bin]);
  }
}

void CpuOps::do_checksum(Stream&, const Checksum& args) {
  uint64_t total = 0;
  std::memcpy(&total, args.sum.data(), sizeof total);
  const auto add = [&]<class Bits>(const Bits* x) {
    const auto part = [=](int64_t begin, int64_t end) {
      uint64_t sum = 0;
      for (int64_t at = begin; at < end; at += kMinPart) {
        sum += checksum_of(x + at, at, std::min(kMinPart, end - at));
      }
      return sum;
    };
    reduce_in_order<uint64_t>(args.x.count(), part, [&](uint64_t sum) { total += sum; });
  };
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    add(static_cast<const std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>*>(args.x.data()));
  });
  std::memcpy(args.sum.data(), &total, sizeof total);
}

}  // namespace tokamak
