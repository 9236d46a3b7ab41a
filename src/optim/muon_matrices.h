// The matrices that Muon updates, and the rank that orthogonalises each. A pure function of weights, rules and the
// number of ranks, so all ranks agree without a message. In round k every rank orthogonalises the k-th matrix of its
// list.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/weight_rules.h"
#include "tensor/unit_layout.h"

namespace tokamak {

// A named weight, never a fused matrix: that would couple its parts (Liu et al. 2025, Moonlight; torchtitan).
struct MuonMatrix {
  int64_t unit = 0;
  size_t weight = 0;              // of the unit, in the order of flat_params
  int64_t rows = 0, columns = 0;  // A, B
  int64_t begin = 0;              // first element in the unit's flat buffer
  double lr_scale = 1, weight_decay = 0;
  int owner = 0;  // rank of the data group
  int64_t round = 0;

  int64_t count() const { return rows * columns; }
};

// FLOPs of one Newton-Schulz iteration, three GEMMs: 4 s^2 l + 2 s^3, s and l the shorter and the longer side.
double newton_schulz_flops(int64_t rows, int64_t columns);

// In forward order, without frozen ones. The costliest matrix first, each goes to the rank with the least to do so far
// (Graham 1969): no rank has more than 4/3 - 1/(3 ranks) of the optimum.
std::vector<MuonMatrix> muon_matrices(const ParamTable& table, const WeightRules& rules, int ranks);

}  // namespace tokamak
