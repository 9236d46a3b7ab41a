#include "bench/coordinate_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <variant>

#include "backend/observer.h"
#include "engine/engine.h"
#include "model/parameters.h"
#include "optim/weight_rules.h"
#include "train/random_batch.h"
#include "train/run_plan.h"

namespace tokamak {

namespace {

constexpr int64_t kHeadDim = 32, kVocab = 256;
constexpr int64_t kLength = 8, kSequences = 4;  // fewer tokens than columns: updates are aligned with what they see
constexpr int64_t kBaseDepth = 2;
constexpr double kInitialStd = 0.01;  // ten updates outweigh it

enum Value { kEmbedding, kAttention, kMlp, kResidual, kFinalNorm, kLogits, kValues };
constexpr std::array<const char*, kValues> kNames = {"embedding", "attention branch", "MLP branch",
                                                     "residual",  "final norm",       "logits"};
constexpr size_t kRows = 2 * kValues;  // each value, then the changes since step 0

// Copies values of a forward pass to the host as its operations compute them: those of all layers in one row.
class Probe final : public Observer {
 public:
  explicit Probe(Device& device) : device_(device) {}

  void begin(Stream&, const Call&) override {}
  void end(Stream& stream, const Call& call) override {
    if (const auto* const embedding = std::get_if<const Embedding*>(&call.arguments)) {
      take(stream, (*embedding)->out, kEmbedding);
    }
    const auto* const found = std::get_if<const Gemm*>(&call.arguments);
    if (found == nullptr) return;
    const Gemm& gemm = **found;
    const std::string label = gemm.label;
    if (label == "o forward" || label == "down forward") {
      std::vector<float>& branch = values[label == "o forward" ? kAttention : kMlp];
      const std::vector<float> after = take(stream, gemm.c, kResidual), before = copy(stream, gemm.residual);
      std::transform(after.begin(), after.end(), before.begin(), std::back_inserter(branch), std::minus<>());
    } else if (label == "head") {
      take(stream, gemm.a, kFinalNorm);
      take(stream, gemm.c, kLogits);
    }
  }

  using Values = std::array<std::vector<float>, kValues>;
  Values values;

 private:
  std::vector<float> copy(Stream& stream, Tensor tensor) {
    std::vector<float> host(static_cast<size_t>(tensor.count()));
    device_.copy_to_host(stream, tensor, host.data());
    stream.synchronize();
    return host;
  }
  std::vector<float> take(Stream& stream, Tensor tensor, Value value) {
    std::vector<float> host = copy(stream, tensor);
    values[value].insert(values[value].end(), host.begin(), host.end());
    return host;
  }

  Device& device_;
};

// Log RMS of the values, or of their changes since `start`.
double log_rms(const std::vector<float>& values, const std::vector<float>* start = nullptr) {
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) squares += std::pow(double(values[i]) - (start ? (*start)[i] : 0), 2);
  return 0.5 * std::log(squares / double(values.size()));
}

bool scales_depth(const ModelConfig& model) { return model.mup.base_num_hidden_layers > 0; }

// Patterns that name layers which the small models lack match nothing there.
void keep_matching_patterns(std::vector<OptimizerGroup>& groups, const ParamTable& table) {
  for (OptimizerGroup& group : groups) {
    std::erase_if(group.match, [&](const std::string& pattern) { return !matches_a_weight(pattern, table); });
  }
  std::erase_if(groups, [](const OptimizerGroup& group) { return group.match.empty(); });
}

RunConfig small_config(const RunConfig& config, int64_t base_width, int64_t width, int64_t depth) {
  RunConfig small = config;
  ModelConfig& model = small.model;
  const auto inner = [&](int64_t hidden) {
    return std::llround(double(config.model.intermediate_size) / double(config.model.hidden_size) * double(hidden));
  };
  // Queries of one key head: equal in all models, and a divisor of the base's heads.
  const int64_t shared = std::gcd(model.num_attention_heads / model.kv_heads(), base_width / kHeadDim);
  model.hidden_size = width;
  model.intermediate_size = inner(width);
  model.num_hidden_layers = depth;
  model.num_attention_heads = width / kHeadDim;
  model.num_key_value_heads = model.num_attention_heads / shared;
  model.head_dim = kHeadDim;
  model.vocab_size = kVocab;
  model.rope_scaling = {};
  model.initializer_range = kInitialStd;
  if (model.mup.is_on()) {
    model.mup = {.base_hidden_size = base_width,
                 .base_intermediate_size = inner(base_width),
                 .base_num_attention_heads = base_width / kHeadDim,
                 .base_num_hidden_layers = kBaseDepth,
                 .depth_alpha = model.mup.depth_alpha};
  }
  keep_matching_patterns(small.optimizer.groups, make_param_table(model));
  small.averages.clear();
  small.parallelism = {};
  small.precision = {.compute = Precision::kF32, .reduce = Precision::kF32};
  small.activation_checkpoint = {};
  return small;
}

// Log RMS of each row at each step, in the form with multipliers: before branches and a tied head's input shrink.
using Logs = std::vector<std::array<double, kRows>>;
Logs train(const RunConfig& config, Backend& backend, int64_t seed, const CoordinateCheckOptions& options) {
  const BatchShape shape{{.length = kLength, .sequences_per_step = kSequences, .sequences_per_rank = kSequences},
                         kSequences};
  const auto comm = make_single_comm();
  Engine engine(engine_options(config, {.max_tokens = kSequences * kLength, .max_length = kLength}), *comm, backend);
  engine.commit();
  engine.parameters().initialize(static_cast<uint64_t>(seed), engine.compute());
  MemoryPlan plan;
  const auto logits = plan.add("logits", DType::kF32, Shape{kSequences * kLength, kVocab});
  const Arena arena(plan, *backend.device);
  RandomBatch batch(shape, {.vocab = kVocab, .rank = static_cast<int>(seed)});
  std::array<double, kValues> multipliers = {};  // logs
  if (const ModelConfig& model = config.model; model.mup.is_on()) {
    const double deeper = double(model.num_hidden_layers) / kBaseDepth;
    multipliers[kAttention] = multipliers[kMlp] = model.mup.depth_alpha * std::log(deeper);
    if (model.tie_word_embeddings) {
      multipliers[kFinalNorm] = std::log(double(model.hidden_size) / double(model.mup.base_hidden_size));
    }
  }

  Logs logs;
  Probe::Values start;
  for (int64_t step = 0; step <= options.steps; ++step) {
    if (step > 0) {
      run_step(engine, batch.step(), {.t = step, .lr = options.lr, .max_grad_norm = 0, .micro_batches = 1});
    }
    Probe probe(*backend.device);
    const Observation observed(*backend.device, probe);
    engine.model().logits(engine.compute(), batch.step()(), 0, arena[logits]);
    if (step == 0) start = probe.values;
    auto& row = logs.emplace_back();
    for (size_t v = 0; v < kValues; ++v) {
      row[v] = log_rms(probe.values[v]) + multipliers[v];
      row[kValues + v] = log_rms(probe.values[v], &start[v]) + multipliers[v];
    }
  }
  return logs;
}

// Slope of the least-squares line through (x, y).
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto mean = [](const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
  };
  double products = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - mean(x)) * (y[i] - mean(y));
    squares += (x[i] - mean(x)) * (x[i] - mean(x));
  }
  return products / squares;
}

template <class ConfigOf>
std::vector<CoordinateSlopes> slopes(const std::vector<int64_t>& sizes, const ConfigOf& config_of, Backend& backend,
                                     const CoordinateCheckOptions& options) {
  const auto steps = static_cast<size_t>(options.steps + 1);
  std::vector<double> x;
  std::vector<std::vector<double>> y(kRows * steps, std::vector<double>(sizes.size()));  // [row, step][size]
  for (size_t i = 0; i < sizes.size(); ++i) {
    x.push_back(std::log(double(sizes[i])));
    for (int64_t seed = 1; seed <= options.seeds; ++seed) {
      const Logs logs = train(config_of(sizes[i]), backend, seed, options);
      for (size_t v = 0; v < kRows; ++v) {
        for (size_t s = 0; s < steps; ++s) y[v * steps + s][i] += logs[s][v] / double(options.seeds);
      }
    }
  }
  std::vector<CoordinateSlopes> all;
  for (size_t v = 0; v < kRows; ++v) {
    const std::string name = kNames[v % kValues];
    CoordinateSlopes& one = all.emplace_back(CoordinateSlopes{v < kValues ? name : "change of " + name, {}});
    for (size_t s = 0; s < steps; ++s) one.of_step.push_back(slope(x, y[v * steps + s]));
  }
  return all;
}

}  // namespace

double CoordinateSlopes::growth() const {
  double most = -INFINITY;
  for (size_t s = kFirstCheckedStep; s < of_step.size(); ++s) {
    if (!std::isfinite(of_step[s])) return INFINITY;
    most = std::max(most, of_step[s]);
  }
  return most;
}

std::vector<std::string> CoordinateCheck::failures() const {
  std::vector<std::string> names;
  for (const auto& [size, rows] : {std::pair{"hidden_size", &by_width}, {"num_hidden_layers", &by_depth}}) {
    for (const CoordinateSlopes& row : *rows) {
      if (!row.passes()) names.push_back(str(row.value, " by ", size));
    }
  }
  return names;
}

CoordinateCheck check_coordinates(const RunConfig& config, Backend& backend, const CoordinateCheckOptions& options) {
  const auto config_of = [&](int64_t width, int64_t depth) {
    return small_config(config, options.widths.front(), width, depth);
  };
  CoordinateCheck check;
  check.by_width = slopes(
      options.widths, [&](int64_t width) { return config_of(width, kBaseDepth); }, backend, options);
  if (config.model.mup.is_on() && !scales_depth(config.model)) return check;
  check.by_depth = slopes(
      options.depths, [&](int64_t depth) { return config_of(options.widths.at(1), depth); }, backend, options);
  return check;
}

}  // namespace tokamak
