// The hardware table: each GPU's stated rates, with their source, and the shares that a run attains. Predictions read
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

// The shares of the stated rates that a training step attains: constants of a GPU generation, fitted on published runs
// (scripts/bench/predict_published.py names them) or measured (scripts/gpu_check.sh, tokamak bench).
struct Efficiency {
  double gemm = 0;              // of the peak, by large GEMMs
  double attention = 0;         // of the peak, by fused attention with heads of 128, FLOPs up to the diagonal
  double native_attention = 0;  // as `attention`, with runtime.attention: native (Ampere's instructions)
  double memory = 0;            // of the memory bandwidth, by other operations
  double bus = 0;               // of a link's rate, by collectives of large messages, in and between nodes
  double contention = 0;        // of the device, taken by a collective from concurrent operations
  double beside = 1;            // of its own rate, kept by a collective during operations; on CPUs both need cores
};

// A GPU model, as --gpu names it.
struct GpuRow {
  const char* name;
  const char* driver_name;  // backend/peak_flops.h has its peak
  int64_t memory_mib;       // as nvidia-smi shows it
  double memory_rate;       // bytes per second
  double link_rate;         // NVLink, bytes per second in each direction
  double watts;             // power limit
  double network_rate;      // of a node of eight with its usual network, see Machine
  Efficiency efficiency;
  const char* source;
  std::string_view kernels_measured_on;  // where `efficiency`, but bus and contention, was measured; "": fitted
};
std::span<const GpuRow> gpu_rows();
const GpuRow* gpu_row_of(std::string_view device);  // by Device::description(); nullptr if there is none

// A call that was timed on a machine.
struct MeasuredOp {
  std::string name;                          // the call's title: "gemm qkv forward", "rmsnorm_backward"
  double m = 0, n = 0, k = 0;                // of a GEMM; 0: another operation
  double flops = 0, bytes = 0, seconds = 0;  // of one call
};

// The share of a device's memory that plans leave free, for contexts of other processes and allocations that a plan
// misses. The driver also keeps some of what nvidia-smi shows: a process sees 79.2 of an H100's 79.6 GiB.
inline constexpr double kFreeShare = 0.04;

// A device, its node and its network.
struct Machine {
  std::string name;
  double bf16_flops = 0, f32_flops = 0;  // dense peak of one device, per second; what MFU divides by
  int64_t memory_bytes = 0;              // of one device
  double free_share = 0;                 // share of memory_bytes that no plan fills
  double memory_rate = 0;                // bytes per second
  double link_rate = 0;                  // between devices of a node, bytes per second in each direction
  double network_rate = 0;               // of all ports of a NODE together, bytes per second in each direction
  int gpus_per_node = 8;
  double watts = 0;           // of one device; 0: unknown
  double launch_seconds = 0;  // least time of an operation
  double hop_seconds = 0;     // least time of a collective, per further rank of its ring
  Efficiency efficiency;
  bool cpu = false;                  // plan with runtime.backend: cpu
  std::vector<MeasuredOp> measured;  // used instead of the rates above for similar calls
  std::string source;
  std::string kernels_measured_on;  // as in GpuRow

  double peak_flops(DType dtype) const { return by_act_type(dtype, f32_flops, bf16_flops); }
  int64_t plannable_bytes() const;                  // memory_bytes without the free share
  Machine with_memory(int64_t bytes) const;         // a plan may fill all of them
  Machine for_attention(AttentionKind kind) const;  // runtime.attention: native has its own rate
};

// A row of the table, by name, or a machine file from tokamak bench. Error(kConfig) naming the nearest row, or the key
// that the file lacks.
Machine find_machine(const std::string& name_or_file);
Machine read_machine(const std::string& path);

// A rank on an unmeasured CPU. It is the same for any number of threads, since it decides micro-batches, and a run's
// bits must not depend on its threads.
Machine cpu_machine();

// "400Gb", "8x400Gb", "3.2Tb": bits per second of a node, as bytes per second. Error(kConfig).
double network_rate(const std::string& text);

}  // namespace tokamak
