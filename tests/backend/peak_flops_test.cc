#include "backend/peak_flops.h"

#include <catch2/catch.hpp>

using namespace tokamak;

TEST_CASE("a GPU's peak is its data sheet's dense rate, by the driver's name") {
  CHECK(peak_flops_of("NVIDIA H200", DType::kBF16) == 989.5e12);
  CHECK(peak_flops_of("NVIDIA H200 NVL", DType::kBF16) == 835.5e12);  // its name begins with the H200's
  CHECK(peak_flops_of("NVIDIA H100 80GB HBM3", DType::kBF16) == 989.5e12);
  CHECK(peak_flops_of("NVIDIA H100 PCIe", DType::kBF16) == 756e12);
  CHECK(peak_flops_of("NVIDIA A100-SXM4-80GB", DType::kBF16) == 312e12);
  CHECK(peak_flops_of("NVIDIA A100-SXM4-80GB", DType::kF32) == 19.5e12);
}

TEST_CASE("a GPU that the table does not know has no peak: it is measured") {
  CHECK(peak_flops_of("NVIDIA A10", DType::kBF16) == 0);  // not a name that begins as an A100's
  CHECK(peak_flops_of("", DType::kBF16) == 0);
}
