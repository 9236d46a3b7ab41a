// Casts, averages, caps, zeros, fills and random contents of flat arrays.
#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "base/error.h"
#include "base/math.h"
#include "base/rng.h"

namespace tokamak {
namespace {

template <class From, class To>
void convert(const From* src, To* dst, int64_t count) {
  parallel_blocks(count, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] = from_float<To>(to_float(src[i]));
  });
}

template <class From>
void accumulate(const From* src, float* dst, int64_t count) {
  parallel_blocks(count, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] += to_float(src[i]);
  });
}

// memcpy and memset already bypass the caches for large outputs.
void copy_bytes(const void* src, void* dst, int64_t bytes) {
  parallel_for(bytes, kBlockElements, [=](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(dst) + begin, static_cast<const std::byte*>(src) + begin,
                static_cast<size_t>(end - begin));
  });
}

template <class T>
void fill_with(T* x, int64_t count, T value) {
  std::byte zeros[sizeof(T)] = {};
  if (std::memcmp(&value, zeros, sizeof(T)) == 0) {
    parallel_for(count, kBlockElements, [=](int64_t begin, int64_t end) {
      std::memset(x + begin, 0, static_cast<size_t>(end - begin) * sizeof(T));
    });
  } else {
    parallel_for(count, kBlockElements, [=](int64_t begin, int64_t end) { std::fill(x + begin, x + end, value); });
  }
}

}  // namespace

void CpuOps::do_cast(Stream&, const Cast& args) {
  const int64_t count = args.src.count();
  with_act_type(args.src.dtype(), [&]<class From>(From) {
    const From* src = args.src.as<From>();
    if (args.write == Write::kAccumulate) {
      accumulate(src, args.dst.as<float>(), count);
    } else if (args.src.dtype() == args.dst.dtype()) {
      copy_bytes(src, args.dst.data(), args.dst.bytes());
    } else {
      with_act_type(args.dst.dtype(), [&]<class To>(To) { convert(src, args.dst.as<To>(), count); });
    }
  });
}

void CpuOps::do_average(Stream&, const Average& args) {
  const auto* x = args.x.as<float>();
  auto* average = args.average.as<float>();
  const auto weight = static_cast<float>(args.weight);
  parallel_blocks(args.x.count(), [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) average[i] += weight * (x[i] - average[i]);
  });
}

void CpuOps::do_soft_cap(Stream&, const SoftCap& args) {
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    T* const x = args.x.as<T>();
    const TanhCap cap(args.cap);
    parallel_blocks(args.x.count(), [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) x[i] = from_float<T>(cap(to_float(x[i])));
    });
  });
}

void CpuOps::do_zero_non_finite(Stream&, const ZeroNonFinite& args) {
  auto* const x = args.x.as<float>();
  parallel_blocks(args.x.count(), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] = std::isfinite(x[i]) ? x[i] : 0.0f;
  });
}

void CpuOps::do_fill(Stream&, const Fill& args) {
  const int64_t count = args.x.count();
  switch (args.x.dtype()) {
    case DType::kF32:
      return fill_with(args.x.as<float>(), count, static_cast<float>(args.value));
    case DType::kBF16:
      return fill_with(args.x.as<bf16>(), count, bf16(static_cast<float>(args.value)));
    case DType::kF64:
      return fill_with(args.x.as<double>(), count, args.value);
    case DType::kI32:
      return fill_with(args.x.as<int32_t>(), count, static_cast<int32_t>(args.value));
  }
  TOKAMAK_UNREACHABLE("dtype of ", args.x.text());
}

void CpuOps::do_random_normal(Stream&, const RandomNormal& args) {
  const RandomStream stream(args.seed, args.name);
  auto* x = args.x.as<float>();
  parallel_blocks(args.x.count(), [&](int64_t begin, int64_t end) {
    stream.fill_normal(x + begin, end - begin, static_cast<uint64_t>(args.first + begin), args.mean, args.std);
  });
}

}  // namespace tokamak
