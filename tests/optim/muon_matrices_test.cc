#include "optim/muon_matrices.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "base/strings.h"

using namespace tokamak;

namespace {

ParamTable table_of(const std::vector<std::vector<Shape>>& layers) {
  ParamTable table;
  for (size_t l = 0; l < layers.size(); ++l) {
    Unit& unit = table.units.emplace_back(Unit{UnitKind::kLayer, str("layer.", l), {}});
    for (size_t m = 0; m < layers[l].size(); ++m) {
      const std::string name = str("layer.", l, ".", m);
      unit.matrices.push_back({name, {{name, layers[l][m], 0, 1}}});
    }
  }
  return table;
}

std::vector<MuonMatrix> matrices_of(const ParamTable& table, int ranks) {
  return muon_matrices(table, weight_rules({.name = "muon"}, table), ranks);
}

std::vector<double> loads(const std::vector<MuonMatrix>& matrices, int ranks) {
  std::vector<double> load(static_cast<size_t>(ranks));
  for (const MuonMatrix& m : matrices) load.at(static_cast<size_t>(m.owner)) += newton_schulz_flops(m.rows, m.columns);
  return load;
}

}  // namespace

TEST_CASE("the FLOPs of an iteration are those of its three GEMMs") {
  // G = X X^T, H = b G + c G G, X = a X + H X, of a (3, 5) matrix: 2 (3 3 5), 2 (3 3 3), 2 (3 3 5)
  CHECK(newton_schulz_flops(3, 5) == 2 * (45 + 27 + 45));
  CHECK(newton_schulz_flops(5, 3) == newton_schulz_flops(3, 5));
}

TEST_CASE("every matrix has one owner, which orthogonalises its own in the order of the forward pass, one a round") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::vector<Shape>> layers(1 + random() % 9);
    for (auto& layer : layers) {
      for (size_t m = 1 + random() % 7; m > 0; --m) {
        layer.push_back({static_cast<int64_t>(1 + random() % 90), static_cast<int64_t>(1 + random() % 90)});
      }
    }
    const int ranks = static_cast<int>(1 + random() % 9);
    const ParamTable table = table_of(layers);
    const std::vector<MuonMatrix> matrices = matrices_of(table, ranks);
    size_t expected = 0;
    for (const auto& layer : layers) expected += layer.size();
    REQUIRE(matrices.size() == expected);
    std::vector<int64_t> next(static_cast<size_t>(ranks));
    for (size_t i = 0; i < matrices.size(); ++i) {
      CHECK(matrices[i].round == next.at(static_cast<size_t>(matrices[i].owner))++);
      if (i > 0)
        CHECK(std::pair(matrices[i - 1].unit, matrices[i - 1].begin) < std::pair(matrices[i].unit, matrices[i].begin));
    }
    // The bound of any list schedule: the mean, and the rest of the costliest matrix.
    const std::vector<double> load = loads(matrices, ranks);
    double largest = 0;
    for (const MuonMatrix& m : matrices) largest = std::max(largest, newton_schulz_flops(m.rows, m.columns));
    const double mean = std::accumulate(load.begin(), load.end(), 0.0) / ranks;
    const double heaviest = *std::max_element(load.begin(), load.end());
    CHECK(heaviest <= mean + (1 - 1.0 / ranks) * largest + 1e-6 * mean);  // Graham (1966)
    if (std::ssize(matrices) <= ranks) CHECK(heaviest == largest);
  }
}

TEST_CASE("equal layers are shared evenly: the heaviest rank has what the specification computed") {
  // Llama 3 8B: q and o 4096 x 4096, k and v 1024 x 4096, gate and up 14336 x 4096, down 4096 x 14336
  const std::vector<Shape> layer = {{4096, 4096},  {1024, 4096},  {1024, 4096}, {4096, 4096},
                                    {14336, 4096}, {14336, 4096}, {4096, 14336}};
  const ParamTable table = table_of(std::vector<std::vector<Shape>>(32, layer));
  const auto heaviest = [&](int ranks) {
    const std::vector<double> load = loads(matrices_of(table, ranks), ranks);
    return *std::max_element(load.begin(), load.end()) * ranks / std::accumulate(load.begin(), load.end(), 0.0);
  };
  CHECK(heaviest(1) == 1);
  CHECK(heaviest(64) == Approx(1.06).margin(0.005));
  CHECK(heaviest(512) == Approx(4.2).margin(0.05));  // 224 matrices: most ranks have none
}

TEST_CASE("frozen weights, and weights that AdamW updates, have no owner") {
  const ParamTable table = table_of({{{4, 6}, {6, 4}, {5, 5}}});
  const auto rules = weight_rules(
      {.name = "muon", .groups = {{.match = {"layer.0.1"}, .lr_scale = 0}, {.match = {"layer.0.2"}, .name = "adamw"}}},
      table);
  const std::vector<MuonMatrix> matrices = muon_matrices(table, rules, 3);
  REQUIRE(matrices.size() == 1);
  CHECK((matrices[0].rows == 4 && matrices[0].columns == 6 && matrices[0].weight == 0));
}
