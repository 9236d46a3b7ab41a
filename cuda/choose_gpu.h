// Assigns a rank to one of the GPUs that are visible to this process.
#pragma once

#include <cstdint>
#include <optional>

namespace tokamak {

struct ShownGpus {
  int count = 0;
  bool restricted = false;  // by CUDA_VISIBLE_DEVICES: the launcher may expose one GPU to each rank
};

// Local rank r uses GPU r / ranks_per_gpu, or the only visible one if each rank sees one, as with srun --gpus-per-task.
// (If all ranks see the same one, NCCL reports it.) nullopt: there are more ranks than GPUs.
inline std::optional<int> choose_gpu(int local_rank, const ShownGpus& shown, int64_t ranks_per_gpu) {
  const auto index = static_cast<int>(local_rank / ranks_per_gpu);
  if (index < shown.count) return index;
  if (shown.count == 1 && shown.restricted) return 0;
  return std::nullopt;
}

}  // namespace tokamak
