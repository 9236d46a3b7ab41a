#include "tensor/tensor.h"

#include "base/error.h"

namespace tokamak {

Shape::Shape(std::initializer_list<int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  TOKAMAK_CHECK(rank_ <= kMaxRank, "rank ", rank_);
  size_t axis = 0;
  for (const int64_t extent : extents) {
    TOKAMAK_CHECK(extent >= 0, "extent ", extent);
    extents_[axis++] = extent;
  }
}

int64_t Shape::count() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= extents_[axis];
  return product;
}

std::string Shape::text() const {
  std::string out = "(";
  for (int axis = 0; axis < rank_; ++axis) out += str(axis > 0 ? ", " : "", extents_[axis]);
  return out + ")";
}

namespace {

void* offset(void* data, int64_t bytes) { return static_cast<std::byte*>(data) + bytes; }

}  // namespace

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  TOKAMAK_CHECK(shape_.rank() >= 1 && 0 <= begin && begin <= end && end <= dim(0), "rows [", begin, ", ", end, ") of ",
                text());
  const int64_t row = dim(0) > 0 ? count() / dim(0) : 0;
  Shape shape = shape_.rank() == 1   ? Shape{end - begin}
                : shape_.rank() == 2 ? Shape{end - begin, dim(1)}
                : shape_.rank() == 3 ? Shape{end - begin, dim(1), dim(2)}
                                     : Shape{end - begin, dim(1), dim(2), dim(3)};
  return {offset(data_, begin * row * size_of(dtype_)), dtype_, shape};
}

Tensor Tensor::flat(int64_t begin, int64_t end) const {
  TOKAMAK_CHECK(0 <= begin && begin <= end && end <= count(), "elements [", begin, ", ", end, ") of ", text());
  return {offset(data_, begin * size_of(dtype_)), dtype_, Shape{end - begin}};
}

Tensor Tensor::reshape(Shape shape) const {
  TOKAMAK_CHECK(shape.count() == count(), text(), " to ", shape.text());
  return {data_, dtype_, shape};
}

std::string Tensor::text() const { return str(name_of(dtype_), " ", shape_.text()); }

void Tensor::expect(DType dtype) const { TOKAMAK_CHECK(dtype == dtype_, text(), " read as ", name_of(dtype)); }

}  // namespace tokamak
