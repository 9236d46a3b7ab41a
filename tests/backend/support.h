// Shared by tests of operations: tensors that own their memory, reproducible contents, float64 copies, relative errors,
// finite differences, and the backend under test. References are always float64. The same cases run on every backend:
// each program that links them defines its own (under_test.h).
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
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/under_test.h"
#include "base/error.h"
#include "base/parallel_for.h"
#include "base/rng.h"
#include "support/facts.h"

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

// The backend under test: one per process, so that cuDNN compiles its plans once. All copies and operations are on one
// stream, so they run in the order in which a case calls them.
struct UnderTest {
  Backend backend = make_backend_under_test();
  std::unique_ptr<Stream> stream = backend.device->make_stream();
  int threads = thread_count();
  std::byte* workspace = nullptr;
  int64_t workspace_bytes = 0;
};
inline UnderTest& under_test() {
  static UnderTest& instance = *std::make_unique<UnderTest>().release();  // the device's library may be gone
  return instance;
}

// Copies between host memory and the device's memory, which the host may be unable to touch.
inline std::string bytes_of(const Tensor& tensor) {
  std::string out(tensor ? static_cast<size_t>(tensor.bytes()) : 0, '\0');
  if (!out.empty()) under_test().backend.device->copy_to_host(*under_test().stream, tensor, out.data());
  under_test().stream->synchronize();
  return out;
}
inline void write_bytes(const Tensor& tensor, const std::string& bytes) {
  TOKAMAK_CHECK(bytes.size() == static_cast<size_t>(tensor.bytes()), bytes.size(), " bytes for ", tensor.text());
  if (!bytes.empty()) under_test().backend.device->copy_to_device(*under_test().stream, bytes.data(), tensor);
}

// A tensor of the device that owns its elements, zeroed. Converts to the view that operations take.
class HostTensor {
 public:
  HostTensor() = default;  // empty: "not given"
  HostTensor(DType dtype, Shape shape) {
    const int64_t bytes = std::max<int64_t>(shape.count() * size_of(dtype), 1);
    memory_ = Memory(under_test().backend.device->allocate(bytes, MemoryKind::kDevice), Free{bytes});
    view_ = Tensor(memory_.get(), dtype, shape);
  }
  HostTensor(DType dtype, Shape shape, const Values& values) : HostTensor(dtype, shape) { set(values); }
  HostTensor(const HostTensor& other) { *this = other; }
  HostTensor& operator=(const HostTensor& other) {
    if (this == &other) return *this;
    return *this = other.view_ ? copy_of(other) : HostTensor();
  }
  HostTensor(HostTensor&& other) noexcept { *this = std::move(other); }
  HostTensor& operator=(HostTensor&& other) noexcept {
    memory_ = std::move(other.memory_);
    view_ = std::exchange(other.view_, Tensor());
    return *this;
  }
  static HostTensor copy_of(const Tensor& tensor) {
    HostTensor copy(tensor.dtype(), tensor.shape());
    write_bytes(copy, bytes_of(tensor));
    return copy;
  }

  operator Tensor() const { return view_; }
  const Tensor& view() const { return view_; }
  DType dtype() const { return view_.dtype(); }
  const Shape& shape() const { return view_.shape(); }
  int64_t count() const { return view_ ? view_.count() : 0; }

  void set(const Values& values) {
    TOKAMAK_CHECK(static_cast<int64_t>(values.size()) == count(), values.size(), " values for ", view_.text());
    std::string bytes(static_cast<size_t>(view_.bytes()), '\0');
    with_type(dtype(), [&]<class T>(T) {
      for (size_t i = 0; i < values.size(); ++i) {
        const T value = [&] {
          if constexpr (std::is_same_v<T, bf16>) return bf16(static_cast<float>(values[i]));
          return static_cast<T>(values[i]);
        }();
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
    write_bytes(view_, bytes);
  }
  Values values() const {
    Values out(static_cast<size_t>(count()));
    const std::string from = bytes();
    with_type(dtype(), [&]<class T>(T value) {
      for (size_t i = 0; i < out.size(); ++i) {
        std::memcpy(&value, from.data() + i * sizeof(T), sizeof(T));
        out[i] = static_cast<double>(to_number(value));
      }
    });
    return out;
  }
  // For comparisons bit for bit.
  std::string bytes() const { return bytes_of(view_); }

 private:
  struct Free {
    int64_t bytes;
    void operator()(std::byte* memory) const {
      under_test().backend.device->release(memory, bytes, MemoryKind::kDevice);
    }
  };
  template <class T>
  static auto to_number(T value) {
    if constexpr (std::is_same_v<T, bf16>)
      return static_cast<float>(value);
    else
      return value;
  }
  using Memory = std::unique_ptr<std::byte, Free>;
  Memory memory_;
  Tensor view_;
};

// Normal deviates times `scale`, rounded to dtype. Different names give different values.
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
inline Deviation max_abs_error(const Values& actual, const Values& expected) {
  TOKAMAK_CHECK(actual.size() == expected.size(), actual.size(), " against ", expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))) continue;
    const double error = std::abs(actual[i] - expected[i]);
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return {worst};
}
inline Deviation max_abs_error(const HostTensor& actual, const Values& expected) {
  return max_abs_error(actual.values(), expected);
}

// max_abs_error over the greatest magnitude expected: the measure for sums, whose terms may cancel.
inline Deviation max_relative_error(const Values& actual, const Values& expected) {
  return {max_abs_error(actual, expected) / std::max(max_abs(expected), 1e-300)};
}
inline Deviation max_relative_error(const HostTensor& actual, const Values& expected) {
  return max_relative_error(actual.values(), expected);
}

// The error of the f32 arithmetic, relative to the greatest expected magnitude: about 1e-7 where terms do not cancel.
// Each value is allowed one rounding to the tensor's dtype, which is not counted.
inline Deviation max_error_before_rounding(const HostTensor& actual, const Values& expected) {
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
  return {worst / std::max(max_abs(expected), 1e-300)};
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

// The backend under test with a workspace bound; `largest` bounds the problems of the test.
struct TestBackend {
  explicit TestBackend(const Workload& largest = small_workload()) {
    UnderTest& all = under_test();
    // oneDNN's kernels are compiled for a number of threads: each number gets new operations.
    if (std::exchange(all.threads, thread_count()) != thread_count()) all.backend.ops = make_backend_under_test().ops;
    const Shape shape = {(ops().workspace_bytes(largest) + 3) / 4};
    if (all.workspace_bytes < 4 * shape.count()) {
      if (all.workspace != nullptr)
        all.backend.device->release(all.workspace, all.workspace_bytes, MemoryKind::kDevice);
      all.workspace_bytes = 4 * shape.count();
      all.workspace = all.backend.device->allocate(all.workspace_bytes, MemoryKind::kDevice);
      workspace = Tensor(all.workspace, DType::kF32, shape);
      write_bytes(workspace, std::string(static_cast<size_t>(workspace.bytes()), '\xFF'));  // any value would do
    }
    workspace = Tensor(all.workspace, DType::kF32, shape);
    ops().bind_workspace(workspace);
  }
  Ops& ops() { return *under_test().backend.ops; }

  static Workload small_workload() {
    Workload w;
    w.tokens = 1024;
    w.hidden = 512;
    w.vocab = 2048;
    w.heads = {8, 8, 128};
    w.max_length = 1024;
    w.compute = DType::kF32;
    return w;
  }

  Stream* stream = under_test().stream.get();
  Tensor workspace;
};

// Sets the number of threads for the lifetime of this object.
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
