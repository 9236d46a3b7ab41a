#include "backend/peak_flops.h"

#include "base/strings.h"

namespace tokamak {

namespace {

struct PeakRow {
  const char* name;  // prefix of the driver's name; the first matching row is used
  double bf16;       // TFLOP/s
  double f32;        //
};

// NVIDIA's data sheets; half of the value if a sheet gives sparse rates.
constexpr PeakRow kPeaks[] = {
    {"NVIDIA B200", 2250, 75},                 // "NVIDIA HGX B200" data sheet
    {"NVIDIA GB200", 2500, 80},                // "NVIDIA GB200 NVL72" product page, per GPU
    {"NVIDIA H200 NVL", 835.5, 60},            // "NVIDIA H200 Tensor Core GPU" data sheet
    {"NVIDIA H200", 989.5, 67},                // "NVIDIA H200 Tensor Core GPU" data sheet
    {"NVIDIA GH200", 989.5, 67},               // "NVIDIA GH200 Grace Hopper Superchip" data sheet
    {"NVIDIA H100 PCIe", 756, 51},             // "NVIDIA H100 Tensor Core GPU" data sheet
    {"NVIDIA H100 NVL", 835.5, 60},            // "NVIDIA H100 Tensor Core GPU" data sheet
    {"NVIDIA H100", 989.5, 67},                // "NVIDIA H100 Tensor Core GPU" data sheet, SXM
    {"NVIDIA H800", 989.5, 67},                // an H100 SXM with a slower NVLink
    {"NVIDIA A100", 312, 19.5},                // "NVIDIA A100 Tensor Core GPU" data sheet
    {"NVIDIA A800", 312, 19.5},                // an A100 with a slower NVLink
    {"NVIDIA L40S", 362, 91.6},                // "NVIDIA L40S" data sheet
    {"NVIDIA A40", 149.7, 37.4},               // "NVIDIA A40" data sheet
    {"NVIDIA GeForce RTX 4090", 165.2, 82.6},  // "NVIDIA Ada GPU Architecture", appendix A: f32 accumulation
    {"NVIDIA GeForce RTX 3090", 71, 35.6},     // "NVIDIA Ampere GA102 GPU Architecture", table 3: f32 accumulation
};

}  // namespace

double peak_flops_of(std::string_view name, DType dtype) {
  for (const PeakRow& row : kPeaks) {
    if (starts_with(name, row.name)) return 1e12 * by_act_type(dtype, row.f32, row.bf16);
  }
  return 0;
}

}  // namespace tokamak
