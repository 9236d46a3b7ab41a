// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bf16.h"

namespace tokamak {

enum class DType : uint8_t { kF32, kBF16, kF64, kI32 };

int64_t size_of(DType dtype);                     // bytes of one element
std::string_view name_of(DType dtype);            // safetensors' spelling: F32, BF16, F64, I32
[[noreturn]] void fail_unsupported(DType dtype);  // a failed CHECK

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

// The compute types, those of an "act" tensor (ops.h), are f32 and bf16. For any other, by_act_type and with_act_type
// fail a CHECK. They do not compile if DType gets a new value.
template <class Value>
Value by_act_type(DType dtype, Value f32, Value bf16) {
  switch (dtype) {
    case DType::kF32:
      return f32;
    case DType::kBF16:
      return bf16;
    case DType::kF64:
    case DType::kI32:
      break;
  }
  fail_unsupported(dtype);
}

// Calls body(T{}) with float or bf16.
template <class Body>
void with_act_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(bf16{});
    case DType::kF64:
    case DType::kI32:
      break;
  }
  fail_unsupported(dtype);
}

}  // namespace tokamak
