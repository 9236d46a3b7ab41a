// The table of environment variables that hurt. Every row has a source, by number:
//  [1] NCCL user guide, Environment Variables (docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html): what each
//      variable disables; those of its section "Debugging" "should not be used in production".
//  [2] CUDA C++ programming guide, CUDA Environment Variables: CUDA_LAUNCH_BLOCKING, CUDA_VISIBLE_DEVICES.
//  [3] OpenMP API 5.2, chapter 21, and libgomp's manual, chapter 3: OMP_PROC_BIND, GOMP_CPU_AFFINITY, OMP_THREAD_LIMIT,
//      OMP_DYNAMIC (libgomp takes the load average into account), OMP_WAIT_POLICY.
//  [4] mallopt(3): MALLOC_CHECK_ (slower, tests each call) and MALLOC_PERTURB_ (fills each block).
//  [5] ld.so(8): LD_PRELOAD is loaded before all others and may replace any function.
//  [6] oneDNN developer guide, "CPU Dispatcher Control" and "Verbose Mode"; DNNL_ is the older prefix of each.
#pragma once

#include <cstdlib>
#include <string>

#include "doctor/environment.h"

namespace tokamak::doctor {

using Value = const std::string&;
using Here = const Surroundings&;

struct VariableRule {
  const char* name;
  bool (*applies)(Here here);
  bool (*hurts)(Value value, Here here);
  const char* effect;
  const char* remedy;
};

inline bool anywhere(Here) { return true; }
inline bool on_cpu(Here here) { return !here.on_gpu; }
inline bool on_gpus(Here here) { return here.on_gpu && here.ranks > 1; }
inline bool on_gpu_hosts(Here here) { return here.on_gpu && here.hosts > 1; }
inline bool on_shared_cores(Here here) { return here.ranks_on_cores > 1; }

inline bool is_set(Value value, Here) { return !value.empty(); }
inline bool is_on(Value value, Here) { return !value.empty() && value != "0"; }

inline constexpr VariableRule kVariableRules[] = {
    {"CUDA_LAUNCH_BLOCKING", anywhere, is_on,  // [2]
     "each kernel ends before the next is launched: no overlap of computing and communication", "unset it"},
    {"CUDA_VISIBLE_DEVICES", anywhere, [](Value v, Here) { return v.empty() || v == "-1"; },  // [2]
     "it hides all GPUs: the run uses the CPU, or ends", "unset it, or list the GPUs"},
    {"NCCL_DEBUG", anywhere, [](Value v, Here here) { return here.on_gpu && v == "TRACE"; },  // [1]
     "NCCL prints a line for every call", "WARN"},
    {"NCCL_P2P_DISABLE", on_gpus, is_on, "GPUs of a host do not use NVLink or PCIe directly", "unset it"},  // [1]
    {"NCCL_SHM_DISABLE", on_gpus, is_on,                                                                    // [1]
     "ranks of a host that lack peer access talk over the network", "unset it"},
    {"NCCL_IB_DISABLE", on_gpu_hosts, is_on,  // [1]
     "hosts talk over IP sockets instead of InfiniBand or RoCE", "unset it where there is such a network"},
    {"NCCL_SOCKET_IFNAME", on_gpu_hosts, [](Value v, Here) { return v == "lo"; },  // [1]
     "the loopback interface reaches no other host", "the interface of the network, or unset it"},
    {"NCCL_ALGO", on_gpus, is_set, "NCCL cannot choose the fastest algorithm for a size", "unset it"},  // [1]
    {"NCCL_PROTO", on_gpus, is_set,                                                                     // [1]
     "NCCL cannot choose its protocol; one that the platform lacks corrupts data", "unset it"},
    {"OMP_PROC_BIND", on_shared_cores, [](Value v, Here) { return !v.empty() && v != "false"; },  // [3]
     "each of the ranks that share these cores binds its threads to the same first ones",
     "unset it, or let the launcher give each rank cores of its own"},
    {"GOMP_CPU_AFFINITY", on_shared_cores, is_set,  // [3]
     "each of the ranks that share these cores binds its threads to the same ones",
     "unset it, or let the launcher give each rank cores of its own"},
    {"OMP_THREAD_LIMIT", anywhere,  // [3]
     [](Value v, Here here) { return !v.empty() && std::atoi(v.c_str()) < here.threads; },
     "fewer threads than runtime.threads_per_rank asks for", "unset it"},
    {"OMP_DYNAMIC", anywhere, [](Value v, Here) { return v == "true" || v == "TRUE"; },  // [3]
     "the number of threads follows the load of the machine, and so does the speed", "unset it"},
    {"OMP_WAIT_POLICY", [](Here here) { return here.threads * here.ranks_on_cores > here.cores; },  // [3]
     [](Value v, Here) { return v == "active" || v == "ACTIVE"; },
     "waiting threads keep the cores from those that compute", "unset it"},
    {"MALLOC_CHECK_", anywhere, is_on, "malloc tests its lists at each call", "unset it"},                       // [4]
    {"MALLOC_PERTURB_", anywhere, is_on, "malloc writes to each block that it allocates or frees", "unset it"},  // [4]
    {"LD_PRELOAD", anywhere, is_set,                                                                             // [5]
     "a library replaces functions of this program", "unset it, unless you know that it is harmless"},
    {"ONEDNN_VERBOSE", on_cpu, is_on, "oneDNN prints a line for every GEMM", "unset it"},                // [6]
    {"DNNL_VERBOSE", on_cpu, is_on, "oneDNN prints a line for every GEMM", "unset it"},                  // [6]
    {"ONEDNN_MAX_CPU_ISA", on_cpu, is_set, "oneDNN uses no newer instructions than these", "unset it"},  // [6]
    {"DNNL_MAX_CPU_ISA", on_cpu, is_set, "oneDNN uses no newer instructions than these", "unset it"},    // [6]
};

}  // namespace tokamak::doctor
