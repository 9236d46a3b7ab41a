#include "cli/machine_json.h"

namespace tokamak::cli {

nlohmann::ordered_json machine_json(const Machine& m) {
  const Efficiency& e = m.efficiency;
  nlohmann::ordered_json measured = nlohmann::ordered_json::array();
  for (const MeasuredOp& op : m.measured) {
    measured.push_back({{"name", op.name},
                        {"m", op.m},
                        {"n", op.n},
                        {"k", op.k},
                        {"flops", op.flops},
                        {"bytes", op.bytes},
                        {"seconds", op.seconds}});
  }
  return {{"name", m.name},
          {"bf16_flops", m.bf16_flops},
          {"f32_flops", m.f32_flops},
          {"memory_bytes", m.memory_bytes},
          {"memory_rate", m.memory_rate},
          {"link_rate", m.link_rate},
          {"network_rate", m.network_rate},
          {"gpus_per_node", m.gpus_per_node},
          {"watts", m.watts},
          {"launch_seconds", m.launch_seconds},
          {"hop_seconds", m.hop_seconds},
          {"efficiency",
           {{"gemm", e.gemm},
            {"attention", e.attention},
            {"native_attention", e.native_attention},
            {"memory", e.memory},
            {"bus", e.bus},
            {"contention", e.contention},
            {"beside", e.beside}}},
          {"cpu", m.cpu},
          {"measured", measured},
          {"source", m.source}};
}

}  // namespace tokamak::cli
