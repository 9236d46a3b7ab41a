// The table of environment variables that hurt. Each row has its source; a row without one does not belong here.
#pragma once

#include <string>
#include <string_view>

#include "doctor/environment.h"

namespace tokamak::doctor {

struct VariableRule {
  const char* name;
  bool (*hurts)(const std::string& value, const Surroundings& here);
  const char* happens;
  const char* instead;
};

inline bool is_on(const std::string& value) { return !value.empty() && value != "0"; }

// Sources, by number:
//  [1] NCCL user guide, Environment Variables (docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html): what each
//      variable disables; those of its section "Debugging" "should not be used in production".
//  [2] CUDA C++ programming guide, CUDA Environment Variables: CUDA_LAUNCH_BLOCKING, CUDA_VISIBLE_DEVICES.
//  [3] OpenMP API 5.2, chapter 21, and libgomp's manual, chapter 3: OMP_PROC_BIND, GOMP_CPU_AFFINITY, OMP_THREAD_LIMIT,
//      OMP_DYNAMIC (libgomp takes the load average into account), OMP_WAIT_POLICY.
//  [4] mallopt(3): MALLOC_CHECK_ (slower, tests each call) and MALLOC_PERTURB_ (fills each block).
//  [5] ld.so(8): LD_PRELOAD is loaded before all others and may replace any function.
//  [6] oneDNN developer guide, "CPU Dispatcher Control" and "Verbose Mode"; DNNL_ is the older prefix of each.
inline constexpr VariableRule kVariableRules[] = {
    {"CUDA_LAUNCH_BLOCKING", [](const std::string& v, const Surroundings&) { return is_on(v); },
     "each kernel ends before the next is launched: no overlap of computing and communication", "unset it"},  // [2]
    {"CUDA_VISIBLE_DEVICES", [](const std::string& v, const Surroundings&) { return v.empty() || v == "-1"; },
     "it hides all GPUs: the run takes the CPU, or ends", "unset it, or list the GPUs"},  // [2]
    {"NCCL_DEBUG", [](const std::string& v, const Surroundings& h) { return h.on_gpu && v == "TRACE"; },
     "NCCL prints a line for every call", "WARN"},  // [1]
    {"NCCL_P2P_DISABLE",
     [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.ranks > 1 && is_on(v); },
     "GPUs of a host do not use NVLink or PCIe directly", "unset it"},  // [1]
    {"NCCL_SHM_DISABLE",
     [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.ranks > 1 && is_on(v); },
     "ranks of a host that lack peer access talk over the network", "unset it"},  // [1]
    {"NCCL_IB_DISABLE", [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.hosts > 1 && is_on(v); },
     "hosts talk over IP sockets rather than InfiniBand or RoCE", "unset it where there is such a network"},  // [1]
    {"NCCL_SOCKET_IFNAME",
     [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.hosts > 1 && v == "lo"; },
     "the loopback interface reaches no other host", "the interface of the network, or unset it"},  // [1]
    {"NCCL_ALGO", [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.ranks > 1 && !v.empty(); },
     "NCCL may not choose the algorithm that is fastest for a size", "unset it"},  // [1]
    {"NCCL_PROTO", [](const std::string& v, const Surroundings& h) { return h.on_gpu && h.ranks > 1 && !v.empty(); },
     "NCCL may not choose its protocol; one that the platform lacks corrupts data", "unset it"},  // [1]
    {"OMP_PROC_BIND",
     [](const std::string& v, const Surroundings& h) { return h.ranks_on_cores > 1 && !v.empty() && v != "false"; },
     "each of the ranks that share these cores binds its threads to the same first ones",
     "unset it, or let the launcher give each rank cores of its own"},  // [3]
    {"GOMP_CPU_AFFINITY",
     [](const std::string& v, const Surroundings& h) { return h.ranks_on_cores > 1 && !v.empty(); },
     "each of the ranks that share these cores binds its threads to the same ones",
     "unset it, or let the launcher give each rank cores of its own"},  // [3]
    {"OMP_THREAD_LIMIT",
     [](const std::string& v, const Surroundings& h) { return !v.empty() && std::atoi(v.c_str()) < h.threads; },
     "fewer threads than runtime.threads_per_rank asks for", "unset it"},  // [3]
    {"OMP_DYNAMIC", [](const std::string& v, const Surroundings&) { return v == "true" || v == "TRUE"; },
     "the number of threads follows the load of the machine, and so does the speed", "unset it"},  // [3]
    {"OMP_WAIT_POLICY",
     [](const std::string& v, const Surroundings& h) {
       return (v == "active" || v == "ACTIVE") && h.threads * h.ranks_on_cores > h.cores;
     },
     "threads that wait keep the cores from those that compute", "unset it"},  // [3]
    {"MALLOC_CHECK_", [](const std::string& v, const Surroundings&) { return is_on(v); },
     "malloc tests its lists at each call", "unset it"},  // [4]
    {"MALLOC_PERTURB_", [](const std::string& v, const Surroundings&) { return is_on(v); },
     "malloc writes to each block that it gives or takes", "unset it"},  // [4]
    {"LD_PRELOAD", [](const std::string& v, const Surroundings&) { return !v.empty(); },
     "a library takes the place of functions of this program", "unset it, unless you know that it is harmless"},  // [5]
    {"ONEDNN_VERBOSE", [](const std::string& v, const Surroundings& h) { return !h.on_gpu && is_on(v); },
     "oneDNN prints a line for every GEMM", "unset it"},  // [6]
    {"DNNL_VERBOSE", [](const std::string& v, const Surroundings& h) { return !h.on_gpu && is_on(v); },
     "oneDNN prints a line for every GEMM", "unset it"},  // [6]
    {"ONEDNN_MAX_CPU_ISA", [](const std::string& v, const Surroundings& h) { return !h.on_gpu && !v.empty(); },
     "oneDNN uses no newer instructions than these", "unset it"},  // [6]
    {"DNNL_MAX_CPU_ISA", [](const std::string& v, const Surroundings& h) { return !h.on_gpu && !v.empty(); },
     "oneDNN uses no newer instructions than these", "unset it"},  // [6]
};

}  // namespace tokamak::doctor
