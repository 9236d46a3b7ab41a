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
  fail_unsupported(dtype);
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

void fail_unsupported(DType dtype) {
  check_failed("a supported dtype", __FILE__, __LINE__, str(name_of(dtype), " (", static_cast<int>(dtype), ")"));
}

}  // namespace tokamak
