#include "optim/muon_matrices.h"

#include <algorithm>
#include <numeric>

namespace tokamak {

double newton_schulz_flops(int64_t rows, int64_t columns) {
  const auto s = double(std::min(rows, columns)), l = double(std::max(rows, columns));
  return 4 * s * s * l + 2 * s * s * s;
}

std::vector<MuonMatrix> muon_matrices(const ParamTable& table, const WeightRules& rules, int ranks) {
  std::vector<MuonMatrix> matrices;
  for (size_t u = 0; u < table.units.size(); ++u) {
    for (size_t weight = 0; const FlatParam& flat : flat_params(table.units[u])) {
      const WeightRule& rule = rules.at(u).at(weight);
      if (rule.optimizer == "muon" && !rule.frozen()) {
        matrices.push_back({.unit = static_cast<int64_t>(u),
                            .weight = weight,
                            .rows = flat.param->shape[0],
                            .columns = flat.param->shape[1],
                            .begin = flat.begin,
                            .lr_scale = rule.lr_scale,
                            .weight_decay = rule.weight_decay});
      }
      ++weight;
    }
  }
  const auto cost = [&](size_t m) { return newton_schulz_flops(matrices[m].rows, matrices[m].columns); };
  std::vector<size_t> by_cost(matrices.size());
  std::iota(by_cost.begin(), by_cost.end(), size_t{0});
  std::stable_sort(by_cost.begin(), by_cost.end(), [&](size_t a, size_t b) { return cost(a) > cost(b); });
  std::vector<double> load(static_cast<size_t>(ranks));
  for (const size_t m : by_cost) {
    const auto least = std::min_element(load.begin(), load.end());
    matrices[m].owner = static_cast<int>(least - load.begin());
    *least += cost(m);
  }
  std::vector<int64_t> rounds(static_cast<size_t>(ranks));
  for (MuonMatrix& matrix : matrices) matrix.round = rounds[static_cast<size_t>(matrix.owner)]++;
  return matrices;
}

}  // namespace tokamak
