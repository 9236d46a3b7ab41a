// Shape and Tensor: a view of contiguous, row-major elements on some device. It owns nothing (an Arena does) and is
// passed by value. An empty Tensor (data() == nullptr) stands for "not given".
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/dtype.h"

namespace tokamak {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;  // rank 0, one element
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[axis]; }
  int64_t count() const;  // product of the dimensions
  bool operator==(const Shape&) const = default;
  std::string text() const;  // "(2, 1024, 768)"

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, DType dtype, Shape shape) : data_(data), dtype_(dtype), shape_(shape) {}

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t count() const { return shape_.count(); }
  int64_t bytes() const { return count() * size_of(dtype_); }
  explicit operator bool() const { return data_ != nullptr; }

  // The elements; T must match the dtype.
  template <class T>
  T* as() const {
    expect(DTypeOf<T>::kValue);
    return static_cast<T*>(data_);
  }

  Tensor rows(int64_t begin, int64_t end) const;  // along the first axis
  Tensor flat(int64_t begin, int64_t end) const;  // elements [begin, end), rank 1
  Tensor flat() const { return flat(0, count()); }
  Tensor reshape(Shape shape) const;  // same count
  std::string text() const;           // "BF16 (1024, 768)"

 private:
  void expect(DType dtype) const;

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  Shape shape_;
};

}  // namespace tokamak
