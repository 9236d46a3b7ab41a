// The hardware table: what a GPU's maker states, and what of it a run attains. Each row has its source; predictions read
// nothing else about a machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/options.h"
#include "tensor/dtype.h"

namespace tokamak {

// What of the stated rates a training step attains: constants of a GPU generation, fitted on published runs
// (scripts/bench/predict_published.py names them) or measured (scripts/gpu_check.sh, tokamak bench --calibrate).
struct Efficiency {
  double gemm = 0;       // share of the peak that large GEMMs attain
  double attention = 0;  // the same of fused attention with heads of 128, of the FLOPs up to the diagonal
  double native_attention =
      0;                  // the same of kernels that use no more than Ampere's instructions: runtime.attention native
  double memory = 0;      // share of the memory bandwidth of what moves bytes
  double bus = 0;         // share of a link's rate that a collective of large messages attains, in and between nodes
  double contention = 0;  // share of the device that a collective takes from the operations beside it
  double beside = 1;      // share of its rate that a collective keeps beside operations; on CPUs both need cores
};

// A GPU model, as --gpu names it.
struct GpuRow {
  const char* name;
  const char* driver_name;  // backend/peak_flops.h has its peak
  int64_t memory_mib;       // as nvidia-smi shows it
  double memory_rate;       // bytes per second
  double link_rate;         // NVLink, bytes per second in each direction
  double watts;             // power limit
  double network_rate;      // of a node of eight with the network that it is usually sold with, see Machine
  Efficiency efficiency;
  const char* source;
  std::string_view kernels_measured_on;  // Tokamak's, all of `efficiency` but bus and contention; empty: fitted
};
std::span<const GpuRow> gpu_rows();
const GpuRow* gpu_row_of(std::string_view device);  // by Device::description(); nullptr: the table has none

// A call that was timed on a machine, by its title and shape.
struct MeasuredOp {
  std::string name;                          // "gemm qkv forward", "rmsnorm_backward": of a call of that title
  double m = 0, n = 0, k = 0;                // of a GEMM; 0: another operation
  double flops = 0, bytes = 0, seconds = 0;  // of one call
};

// The share of a device's memory that plans leave free. The table states what nvidia-smi shows. The driver keeps some of it
// (a process sees 79.2 of an H100's 79.6 GiB), and so do contexts of other processes; the rest is for what a plan misses.
inline constexpr double kFreeShare = 0.04;

// What a step is predicted for.
struct Machine {
  std::string name;
  double bf16_flops = 0, f32_flops = 0;  // dense peak of one device, per second; what MFU divides by
  int64_t memory_bytes = 0;              // of one device
  double free_share = 0;                 // of memory_bytes: no plan fills it
  double memory_rate = 0;                // bytes per second
  double link_rate = 0;                  // between devices of a node, bytes per second in each direction
  double network_rate = 0;               // of a NODE to others, all its ports, bytes per second in each direction
  int gpus_per_node = 8;
  double watts = 0;           // of one device; 0: unknown
  double launch_seconds = 0;  // that an operation takes at least, however small
  double hop_seconds = 0;     // that a collective takes for each further rank of its ring, however small
  Efficiency efficiency;
  bool cpu = false;                  // its plans are for runtime.backend: cpu
  std::vector<MeasuredOp> measured;  // may be empty: by the rates above
  std::string source;
  std::string kernels_measured_on;  // as in GpuRow

  double peak_flops(DType dtype) const { return by_act_type(dtype, f32_flops, bf16_flops); }
  int64_t plannable_bytes() const;                  // memory_bytes without the free share
  Machine with_memory(int64_t bytes) const;         // of which a plan may fill all
  Machine for_attention(AttentionKind kind) const;  // runtime.attention: native has its own rate
};

// A row of the table, by name; or a machine file of
// `tokamak bench --calibrate`. Error(kConfig) naming the nearest row, or what the file lacks.
Machine find_machine(const std::string& name_or_file);
Machine read_machine(const std::string& path);

// A rank on a CPU that nobody has measured. The same for any number of threads, since micro-batches are chosen by it, and
// a run's bits do not depend on its threads.
Machine cpu_machine();

// "400Gb", "8x400Gb", "3.2Tb": bits per second of a node, as bytes per second. Error(kConfig).
double network_rate(const std::string& text);

}  // namespace tokamak
