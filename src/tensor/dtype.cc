#include "tensor/dtype.h"

#include "base/error.h"

namespace tokamak {

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kF64:
      return 8;
    case DType::kI32:
      return 4;
  }
  TOKAMAK_CHECK(false, "dtype ", static_cast<int>(dtype));
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kF64:
      return "F64";
    case DType::kI32:
      return "I32";
  }
  return "?";
}

}  // namespace tokamak
