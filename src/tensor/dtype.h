// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bf16.h"

namespace tokamak {

enum class DType : uint8_t { kF32, kBF16, kF64, kI32 };

int64_t size_of(DType dtype);           // bytes of one element
std::string_view name_of(DType dtype);  // safetensors' spelling: F32, BF16, F64, I32

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kI32;
};

// Calls body(T{}) with the compute type, float or bf16, of an "act" tensor.
template <class Body>
void with_act_type(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) {
    body(bf16{});
  } else {
    body(float{});
  }
}

}  // namespace tokamak
