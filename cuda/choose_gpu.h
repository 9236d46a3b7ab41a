// Which of the GPUs that this process is shown a rank computes on.
#pragma once

#include <cstdint>
#include <optional>

namespace tokamak {

struct ShownGpus {
  int count = 0;
  bool restricted = false;  // by CUDA_VISIBLE_DEVICES: the launcher may have shown each rank its own
};

// Local rank r takes GPU r / ranks_per_gpu, or the only one where each rank is shown one, as srun --gpus-per-task does.
// (If it shows all ranks the same one, NCCL finds out.) Nothing: there are more ranks than GPUs.
inline std::optional<int> choose_gpu(int local_rank, const ShownGpus& shown, int64_t ranks_per_gpu) {
  const auto index = static_cast<int>(local_rank / ranks_per_gpu);
  if (index < shown.count) return index;
  if (shown.count == 1 && shown.restricted) return 0;
  return std::nullopt;
}

}  // namespace tokamak
