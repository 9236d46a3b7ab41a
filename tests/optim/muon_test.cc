// Muon by itself: its formula against float64, and the same bits however the state is shared.
#include "optim/muon.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "formats/safetensors.h"
#include "optim/sharded_optimizer.h"
#include "support/test_data.h"

using namespace tokamak;

namespace {

using Matrix64 = std::vector<double>;  // row-major

OptimizerOptions muon_options() { return {.name = "muon", .lr = 0.02}; }

// C = A B of (m, k) and (k, n), in float64.
Matrix64 multiply(const Matrix64& a, const Matrix64& b, size_t m, size_t k, size_t n) {
  Matrix64 c(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t t = 0; t < k; ++t) c[i * n + j] += a[i * k + t] * b[t * n + j];
    }
  }
  return c;
}

Matrix64 transpose(const Matrix64& a, size_t m, size_t n) {
  Matrix64 out(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) out[j * m + i] = a[i * n + j];
  }
  return out;
}

// Newton-Schulz as KellerJordan/Muon muon.py states it: tall matrices are transposed.
Matrix64 orthogonalised(Matrix64 x, size_t m, size_t n, int steps) {
  if (m > n) return transpose(orthogonalised(transpose(x, m, n), n, m, steps), n, m);
  double squares = 0;
  for (const double v : x) squares += v * v;
  for (double& v : x) v /= std::max(std::sqrt(squares), 1e-7);
  for (int i = 0; i < steps; ++i) {
    const Matrix64 gram = multiply(x, transpose(x, m, n), m, n, m), square = multiply(gram, gram, m, m, m);
    Matrix64 h(m * m);
    for (size_t j = 0; j < h.size(); ++j) h[j] = -4.7750 * gram[j] + 2.0315 * square[j];
    const Matrix64 hx = multiply(h, x, m, m, n);
    for (size_t j = 0; j < x.size(); ++j) x[j] = 3.4445 * x[j] + hx[j];
  }
  return x;
}

// Masters of a table of one matrix after `steps`, in float64, with the gradients of run_steps().
Matrix64 reference(const Matrix64& start, Shape shape, const OptimizerOptions& options, const OptimizerSteps& steps) {
  const auto a = double(shape[0]), b = double(shape[1]);
  const double scale = options.muon.scale == MuonScale::kOriginal   ? std::sqrt(std::max(1.0, a / b))
                       : options.muon.scale == MuonScale::kSpectral ? std::sqrt(a / b)
                                                                    : 0.2 * std::sqrt(std::max(a, b));
  const double mu = options.muon.momentum;
  Matrix64 w = start, momentum(w.size()), direction(w.size());
  for (int64_t t = steps.first; t <= steps.last; ++t) {
    const RandomStream random(5, str("gradients of step ", t));
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = random.normal(i);
      momentum[i] = mu * momentum[i] + (1 - mu) * g;
      direction[i] = options.muon.nesterov ? mu * momentum[i] + (1 - mu) * g : momentum[i];
    }
    const Matrix64 o = orthogonalised(direction, static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]),
                                      static_cast<int>(options.muon.steps));
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = w[i] * (1 - steps.lr * options.weight_decay) - steps.lr * scale * o[i];
    }
  }
  return w;
}

ParamTable table_of(Shape shape) {
  return {{{UnitKind::kLayer, "layer.0", {{"w", {small_matrix("w", shape[0], shape[1])}}}}}};
}

// |a - b| / |a - start|, Frobenius.
double error_of_update(const Matrix64& a, const std::vector<float>& b, const Matrix64& start) {
  double difference = 0, moved = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - double(b[i]), 2);
    moved += std::pow(a[i] - start[i], 2);
  }
  return std::sqrt(difference / moved);
}

}  // namespace

TEST_CASE("60 steps are those of the formula, for square, wide, tall and odd matrices") {
  for (const Shape& shape : {Shape{24, 24}, Shape{12, 40}, Shape{40, 12}, Shape{31, 17}, Shape{1, 20}, Shape{20, 1}}) {
    for (const MuonScale scale : {MuonScale::kMatchRmsAdamW, MuonScale::kOriginal, MuonScale::kSpectral}) {
      for (const bool nesterov : {true, false}) {
        for (const double decay : {0.0, 0.1}) {
          OptimizerOptions options = muon_options();
          options.weight_decay = decay;
          options.muon.scale = scale;
          options.muon.nesterov = nesterov;
          const ParamTable table = table_of(shape);
          const OptimizerSteps none = {.last = 0, .compute = DType::kF32};
          const std::vector<float> start = run_steps(table, options, {}, none).at("master");
          const Matrix64 start64(start.begin(), start.end());
          OptimizerSteps steps = {.last = 60, .lr = 0.02, .compute = DType::kF32};
          const Matrix64 wanted = reference(start64, shape, options, steps);
          INFO(shape.text() << ", scale " << enum_name(scale) << ", nesterov " << nesterov << ", decay " << decay);
          CHECK(error_of_update(wanted, run_steps(table, options, {}, steps).at("master"), start64) < 1e-4);
          steps.compute = DType::kBF16;  // orthogonalises in bf16, which differs by 1.3 to 2.1 % from float64
          CHECK(error_of_update(wanted, run_steps(table, options, {}, steps).at("master"), start64) < 0.02);
        }
      }
    }
  }
}

TEST_CASE("60 steps are those of torch.optim.Muon, which orthogonalises in bf16") {
  const SafetensorsFile file(test_data() + "/muon.safetensors", Kind::kData);
  const auto cases = nlohmann::json::parse(file.metadata().at("cases"));
  const double lr = nlohmann::json::parse(file.metadata().at("lr")).get<double>();
  for (size_t c = 0; c < cases.size(); ++c) {
    const auto& one = cases.at(c);
    const std::string name = str(c, "/");
    OptimizerOptions options = muon_options();
    options.weight_decay = one.at("weight_decay");
    options.muon.nesterov = one.at("nesterov");
    options.muon.scale = one.at("scale") == "original" ? MuonScale::kOriginal : MuonScale::kMatchRmsAdamW;
    options.muon.momentum = nlohmann::json::parse(file.metadata().at("momentum")).get<double>();
    const ParamTable table = table_of({one.at("shape").at(0), one.at("shape").at(1)});
    const auto start = file.values<float>(name + "start"), end = file.values<float>(name + "end");
    const auto gradients = file.values<float>(name + "gradients");
    for (const DType compute : {DType::kBF16, DType::kF32}) {
      const OptimizerSteps steps = {
          .last = std::ssize(gradients) / std::ssize(start), .lr = lr, .compute = compute, .given = gradients};
      REQUIRE(steps.last == 60);
      const WholeState from = {{"master", start}, {"weights", start}, {"momentum", std::vector<float>(start.size())}};
      const WholeState ours = run_steps(table, options, {}, steps, &from);
      INFO(one.dump() << " " << name_of(compute));
      // Both round to bf16, in different places; recipes of either differ by 1.3 to 2.1 % from float64.
      CHECK(error_of_update({end.begin(), end.end()}, ours.at("master"), {start.begin(), start.end()}) < 0.02);
    }
  }
}

TEST_CASE("a run in bf16 orthogonalises in bf16, one in f32 in f32") {
  const auto masters = [](DType compute) {
    return run_steps(uneven_table(), muon_options(), {2}, {.last = 1, .compute = compute}).at("master");
  };
  CHECK(masters(DType::kBF16) != masters(DType::kF32));
}

TEST_CASE("any number of ranks and replicas, by any policy, has the bits of one rank") {
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    for (const MomentType moments : {MomentType::kF32, MomentType::kBF16}) {
      OptimizerOptions options = muon_options();
      options.moments = moments;
      const OptimizerSteps steps = {.compute = compute};
      const WholeState one = run_steps(uneven_table(), options, {}, steps);
      std::vector<Split> splits = all_splits();
      splits.push_back({6, 1, {}});
      splits.push_back({6, 3, {}});
      for (const Split& split : splits) {
        INFO(split.text() << ", " << name_of(compute) << ", moments " << enum_name(moments));
        CHECK((run_steps(uneven_table(), options, split, steps) == one));
      }
    }
  }
}

TEST_CASE("a run that goes on from another number of ranks ends with the bits of one that never stopped") {
  const WholeState straight = run_steps(uneven_table(), muon_options(), {});
  for (const Split& before : {Split{1}, Split{3}, Split{4, 2}}) {
    const WholeState half = run_steps(uneven_table(), muon_options(), before, {.last = 2});
    for (const Split& after : {Split{1}, Split{2}, Split{4, 2}}) {
      INFO(before.text() << ", then " << after.text());
      CHECK((run_steps(uneven_table(), muon_options(), after, {.first = 3}, &half) == straight));
    }
  }
}

TEST_CASE("a fused matrix has the bits of its parts in units of their own: each part is orthogonalised by itself") {
  const auto part = [](const std::string& name, int64_t rows) { return small_matrix(name, rows, 64); };
  const ParamTable fused = {{{UnitKind::kLayer, "layer.0", {{"qkv", {part("q", 24), part("k", 8)}}}}}};
  const ParamTable apart = {{{UnitKind::kLayer, "layer.0", {{"q", {part("q", 24)}}, {"k", {part("k", 8)}}}}}};
  // Both lie alike in the flat unit, whose matrices begin at multiples of 64 elements.
  CHECK((run_steps(fused, muon_options(), {2}) == run_steps(apart, muon_options(), {3})));
  const ParamTable whole = {{{UnitKind::kLayer, "layer.0", {{"qk", {part("qk", 32)}}}}}};
  const OptimizerSteps still = {.lr = 0};  // the initial weights differ by name
  CHECK(run_steps(whole, muon_options(), {}, still).at("momentum") ==
        run_steps(fused, muon_options(), {}, still).at("momentum"));
}

TEST_CASE("only matrices of layers have momentum, and the others the moments of AdamW") {
  const WholeState state = run_steps(uneven_table(), muon_options(), {2});
  const ParamTable table = uneven_table();
  const auto count = [&](size_t unit) { return static_cast<size_t>(table.units[unit].count()); };
  CHECK(state.at("momentum").size() == count(1) + count(2));
  CHECK(state.at("exp_avg").size() == count(0) + count(3) + count(4));
  CHECK(state.at("exp_avg_sq").size() == state.at("exp_avg").size());
  OptimizerOptions split = muon_options();
  split.groups = {{.match = {"layer.1.o"}, .name = "adamw"}};  // its unit then has both
  const WholeState both = run_steps(table, split, {2});
  CHECK(both.at("momentum").size() == count(1) + count(2));
  CHECK(both.at("exp_avg").size() == count(0) + count(2) + count(3) + count(4));
}

TEST_CASE("a group's factor scales the updates and the decay of its weights, by Muon and by AdamW") {
  OptimizerOptions halved = muon_options();
  halved.groups = {{.match = {"*"}, .lr_scale = 0.5}};
  CHECK((run_steps(uneven_table(), halved, {2}, {.lr = 0.01}) ==
         run_steps(uneven_table(), muon_options(), {3}, {.lr = 0.005})));
}

TEST_CASE("a step that is skipped changes nothing, whatever its gradients are") {
  const WholeState before = run_steps(uneven_table(), muon_options(), {3}, {.last = 3});
  for (const float gradient : {NAN, INFINITY}) {
    const OptimizerSteps skipped = {.first = 4, .last = 6, .apply = 0, .gradient = gradient};
    CHECK((run_steps(uneven_table(), muon_options(), {2}, skipped, &before) == before));
  }
}
