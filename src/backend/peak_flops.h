// Peak FLOP/s of GPUs from their data sheets: the denominator of MFU.
#pragma once

#include <string_view>

#include "tensor/dtype.h"

namespace tokamak {

// Dense (not sparse) GEMM FLOP/s of a GPU with the driver's name `name`: bf16 with f32 accumulation on
// tensor cores, or plain f32. 0 if the table lacks it.
double peak_flops_of(std::string_view name, DType dtype);

}  // namespace tokamak
