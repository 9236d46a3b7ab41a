// Megatron's arithmetic of splits and weights, in the same operations on doubles, since a difference of one bit moves a
// sample (megatron/core/datasets: blended_megatron_dataset_config.py, utils.py, blended_megatron_dataset_builder.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tokamak {

struct SequenceRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// The training part of `sequences` sequences under --split, for example "969,30,1"; "": all. Error(kConfig) if the text
// is no split or has no training part.
SequenceRange megatron_training_part(const std::string& split, int64_t sequences);

// Weights divided by their sum, which is numpy's (pairwise).
std::vector<double> megatron_normalized(std::span<const double> weights);

// Samples that a blend of `samples` takes from a source, and those that its data set is built with: 0.5 % more.
int64_t megatron_share(int64_t samples, double weight);
int64_t megatron_share_with_surplus(int64_t samples, double weight);

}  // namespace tokamak
