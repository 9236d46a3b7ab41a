// The sources of Megatron-LM's BlendedDataset, bit for bit (build_blending_indices in megatron/core/datasets/
// helpers.cpp): sample k is of the source that is most behind its share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/order/source_schedule.h"

namespace tokamak {

class MegatronBlend final : public SourceSchedule {
 public:
  static constexpr int64_t kMostSources = 32766;  // Megatron's limit

  // `weights` are normalised. Error(kConfig) if there are too many sources or samples.
  MegatronBlend(std::span<const double> weights, int64_t samples);

  Draw at(int64_t k) const override;  // k modulo the number of samples
  int64_t count(int64_t source, int64_t samples) const override;
  int64_t memory_bytes() const override { return planned_bytes(std::ssize(source_)); }

  static int64_t planned_bytes(int64_t samples) { return samples * int64_t{sizeof(uint16_t) + sizeof(uint32_t)}; }

 private:
  std::vector<uint16_t> source_;  // (samples)
  std::vector<uint32_t> index_;   // (samples) earlier samples of the same source
  std::vector<int64_t> taken_;    // (sources) of all samples
};

}  // namespace tokamak
