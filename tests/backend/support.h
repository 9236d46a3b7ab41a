// What tests of operations share: host tensors that own their memory, reproducible contents, float64 copies, errors in
// units that mean something, finite differences, and the backend under test, ready to run. References are always
// float64. The same cases run on every backend: the program that they are linked into says which (under_test.h).
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/under_test.h"
#include "base/error.h"
#include "base/parallel_for.h"
#include "base/rng.h"

namespace tokamak::testing {

using Values = std::vector<double>;

// Calls body(T{}) with the element type of `dtype`.
template <class Body>
void with_type(DType dtype, const Body& body) {
  if (dtype == DType::kF32) return body(float{});
  if (dtype == DType::kBF16) return body(bf16(0.0f));
  if (dtype == DType::kF64) return body(double{});
  body(int32_t{});
}

// A tensor that owns its elements: zeroed, aligned as an Arena's. Converts to the view that operations take.
class HostTensor {
 public:
  HostTensor() = default;  // empty: "not given"
  HostTensor(DType dtype, Shape shape) {
    const auto bytes = static_cast<size_t>(std::max<int64_t>(shape.count() * size_of(dtype), 1));
    memory_.reset(allocate_under_test(bytes));
    std::memset(memory_.get(), 0, bytes);
    view_ = Tensor(memory_.get(), dtype, shape);
  }
  HostTensor(DType dtype, Shape shape, const Values& values) : HostTensor(dtype, shape) { set(values); }
  HostTensor(const HostTensor& other) { *this = other; }
  HostTensor& operator=(const HostTensor& other) {
    if (this == &other) return *this;
    if (!other.view_) {
      memory_.reset();
      view_ = Tensor();
      return *this;
    }
    HostTensor copy(other.dtype(), other.shape());
    std::memcpy(copy.memory_.get(), other.memory_.get(), static_cast<size_t>(other.view_.bytes()));
    return *this = std::move(copy);
  }
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;

  operator Tensor() const { return view_; }
  const Tensor& view() const { return view_; }
  DType dtype() const { return view_.dtype(); }
  const Shape& shape() const { return view_.shape(); }
  int64_t count() const { return view_ ? view_.count() : 0; }
  template <class T>
  T* as() const {
    return view_.as<T>();
  }

  void set(const Values& values) {
    TOKAMAK_CHECK(static_cast<int64_t>(values.size()) == count(), values.size(), " values for ", view_.text());
    with_type(dtype(), [&]<class T>(T) {
      for (size_t i = 0; i < values.size(); ++i) {
        if constexpr (std::is_same_v<T, bf16>) {
          as<T>()[i] = bf16(static_cast<float>(values[i]));
        } else {
          as<T>()[i] = static_cast<T>(values[i]);
        }
      }
    });
  }
  Values values() const {
    Values out(static_cast<size_t>(count()));
    with_type(dtype(), [&]<class T>(T) {
      for (size_t i = 0; i < out.size(); ++i) {
        if constexpr (std::is_same_v<T, bf16>) {
          out[i] = static_cast<float>(as<T>()[i]);
        } else {
          out[i] = static_cast<double>(as<T>()[i]);
        }
      }
    });
    return out;
  }
  // The bytes, for comparisons bit for bit.
  std::string bytes() const {
    return view_ ? std::string(reinterpret_cast<const char*>(memory_.get()), static_cast<size_t>(view_.bytes())) : "";
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { release_under_test(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  Tensor view_;
};

// Normal deviates times `scale`, rounded to dtype; another `name`, other values.
inline HostTensor random_tensor(DType dtype, Shape shape, const std::string& name, double scale = 1.0) {
  const RandomStream stream(1234, name);
  Values values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * stream.normal(i);
  return HostTensor(dtype, shape, values);
}

// i32, uniform in [low, high).
inline HostTensor random_ids(Shape shape, int64_t low, int64_t high, const std::string& name) {
  const RandomStream stream(1234, name);
  Values values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(low + static_cast<int64_t>(stream.word(i) % static_cast<uint64_t>(high - low)));
  }
  return HostTensor(DType::kI32, shape, values);
}

inline double max_abs(const Values& x) {
  double worst = 0;
  for (const double v : x) worst = std::max(worst, std::abs(v));
  return worst;
}

// The greatest |actual - expected|; inf where one is NaN and the other is not.
inline double max_abs_error(const Values& actual, const Values& expected) {
  TOKAMAK_CHECK(actual.size() == expected.size(), actual.size(), " against ", expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))) continue;
    const double error = std::abs(actual[i] - expected[i]);
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst;
}
inline double max_abs_error(const HostTensor& actual, const Values& expected) {
  return max_abs_error(actual.values(), expected);
}

// max_abs_error over the greatest magnitude expected: the measure for sums, whose terms may cancel.
inline double max_relative_error(const Values& actual, const Values& expected) {
  return max_abs_error(actual, expected) / std::max(max_abs(expected), 1e-300);
}
inline double max_relative_error(const HostTensor& actual, const Values& expected) {
  return max_relative_error(actual.values(), expected);
}

// What is left of the errors once each value is allowed one rounding to the tensor's dtype, over the greatest magnitude
// expected: the error of the f32 arithmetic before that rounding, about 1e-7 where terms do not cancel.
inline double max_error_before_rounding(const HostTensor& actual, const Values& expected) {
  const Values values = actual.values();
  TOKAMAK_CHECK(values.size() == expected.size(), values.size(), " against ", expected.size());
  const int precision = actual.dtype() == DType::kBF16 ? 8 : actual.dtype() == DType::kF32 ? 24 : 53;
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == expected[i]) continue;
    const double half_unit = expected[i] == 0 ? 0 : std::ldexp(0.5, std::ilogb(expected[i]) + 1 - precision);
    const double error = std::abs(values[i] - expected[i]) - half_unit;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst / std::max(max_abs(expected), 1e-300);
}

// Gradient of f at x by central differences; error about step^2 |f'''| / 6 + 1e-16 |f| / step.
inline Values finite_difference(const std::function<double(const Values&)>& f, Values x, double step = 1e-4) {
  Values gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double centre = x[i];
    x[i] = centre + step;
    const double above = f(x);
    x[i] = centre - step;
    const double below = f(x);
    x[i] = centre;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

// The scalar whose gradient a backward computes, given the gradient `weights` of its output.
inline double dot(const Values& x, const Values& weights) {
  TOKAMAK_CHECK(x.size() == weights.size(), x.size(), " against ", weights.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * weights[i];
  return sum;
}

// The backend under test with a stream and a workspace bound; `largest` bounds the problems of the test.
struct TestBackend {
  explicit TestBackend(const Workload& largest = small_workload())
      : backend(make_backend_under_test()),
        stream(backend.device->make_stream()),
        workspace(DType::kF32, {(backend.ops->workspace_bytes(largest) + 3) / 4}) {
    std::memset(workspace.as<float>(), 0xFF, static_cast<size_t>(workspace.view().bytes()));  // NaN: as good as any
    backend.ops->bind_workspace(workspace);
  }
  Ops& ops() { return *backend.ops; }

  static Workload small_workload() {
    Workload w;
    w.tokens = 1024;
    w.hidden = 512;
    w.intermediate = 1024;
    w.vocab = 2048;
    w.heads = {8, 8, 128};
    w.max_length = 1024;
    w.compute = DType::kF32;
    return w;
  }

  Backend backend;
  std::unique_ptr<Stream> stream;
  HostTensor workspace;
};

// The number of threads for the life of this object.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(thread_count()) { set_thread_count(threads); }
  ~ThreadCount() { set_thread_count(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// Requires that run(), which returns the bytes of all outputs, gives the same with 1, 2, 3 and 4 threads.
inline void require_thread_invariance(const std::function<std::string()>& run) {
  std::string one;
  for (int threads = 1; threads <= 4; ++threads) {
    const ThreadCount guard(threads);
    if (threads == 1) {
      one = run();
    } else {
      INFO(threads << " threads");
      REQUIRE((run() == one));
    }
  }
}

}  // namespace tokamak::testing
