// Peak rates of GPUs, from their makers' data sheets: what MFU is measured against.
#pragma once

#include <string_view>

#include "tensor/dtype.h"

namespace tokamak {

// Dense (not sparse) FLOP/s of GEMMs of a GPU that the driver calls `name`: bf16 with f32 accumulation on
// tensor cores, or plain f32. 0 where the table has no row for it.
double peak_flops_of(std::string_view name, DType dtype);

}  // namespace tokamak
