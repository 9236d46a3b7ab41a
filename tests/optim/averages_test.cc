// Averages of the weights against their closed forms in float64, on any number of ranks; and that a look through an
// average leaves no trace.
#include "optim/averages.h"

#include <cmath>

#include "optim/sharded_optimizer.h"

using namespace tokamak;

namespace {

const AverageOptions kExponential{.name = "ema", .half_life = TrainingLength::tokens(700), .every = 1, .start = {}};
const AverageOptions kMean{.name = "mean", .half_life = {}, .every = 1, .start = {}};

// Tokens of 60 updates, which differ from one to the next.
std::vector<int64_t> tokens_of_updates() {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 60; ++i) tokens.push_back(13 + i * i % 97);
  return tokens;
}

// The f32 elements of a tensor of every rank, without padding, by unit and element of the unit.
using Whole = std::map<std::pair<size_t, int64_t>, float>;

void gather(const ShardedParameters& parameters, Tensor tensor, Whole& whole) {
  static std::mutex access;
  const std::lock_guard lock(access);
  for (size_t u = 0; u < parameters.table().units.size(); ++u) {
    const auto unit = static_cast<int64_t>(u);
    const int64_t slice = parameters.slice_elements(unit), first = parameters.mesh().shard().rank() * slice;
    for (const FlatParam& flat : flat_params(parameters.table().units[u])) {
      for (int64_t i = std::max(flat.begin, first); i < std::min(flat.end, first + slice); ++i) {
        whole[{u, i}] = tensor.as<float>()[parameters.slice_begin(unit) + i - first];
      }
    }
  }
}

// The result of 60 updates by weights of another seed each, which are the same for any number of ranks.
struct Averaged {
  std::vector<Whole> weights;  // of each update
  Whole exponential, mean;
};

Averaged averaged_on(int ranks) {
  Averaged result;
  result.weights.resize(60);
  const ParamTable table = uneven_table();
  on_threads(ranks, [&](World& world) {
    const MeshGroups groups(world.comm(), 1);
    Backend backend = make_cpu_backend();
    const auto stream = backend.device->make_stream();
    MemoryPlan plan;
    ShardedParameters parameters(table, groups.mesh(), backend, {}, plan);
    Averages averages({kExponential, kMean}, parameters, plan);
    const Arena arena(plan, *backend.device);
    parameters.commit(arena);
    averages.commit(arena, *stream);
    int64_t updates = 0;
    for (const int64_t tokens : tokens_of_updates()) {
      parameters.initialize(static_cast<uint64_t>(updates), *stream);
      averages.update({average_weight(kExponential, updates, tokens), average_weight(kMean, updates, tokens)}, *stream);
      averages.update({0, 0}, *stream);  // no update
      averages.update({}, *stream);      // none either
      gather(parameters, parameters.master(), result.weights[static_cast<size_t>(updates++)]);
    }
    gather(parameters, averages.state()[0].tensor, result.exponential);
    gather(parameters, averages.state()[1].tensor, result.mean);
  });
  return result;
}

}  // namespace

TEST_CASE("60 updates make the exponential average and the mean of their closed forms") {
  const Averaged result = averaged_on(1);
  const std::vector<int64_t> tokens = tokens_of_updates();
  // W_k counts (1 - 0.5^(tokens_k / half-life)) 0.5^(tokens after it / half-life); W_0 all that is left.
  std::vector<double> share(60);
  double after = 0;
  for (size_t k = 60; k-- > 0;) {
    share[k] = std::pow(0.5, after / 700) * (k == 0 ? 1 : 1 - std::pow(0.5, double(tokens[k]) / 700));
    after += double(tokens[k]);
  }
  REQUIRE(std::abs(share[0] - std::pow(0.5, (after - 13) / 700)) < 1e-12);
  REQUIRE(result.exponential.size() == size_t(uneven_table().count()));
  for (const auto& [at, value] : result.exponential) {
    double exponential = 0, mean = 0;
    for (size_t k = 0; k < 60; ++k) {
      exponential += share[k] * double(result.weights[k].at(at));
      mean += double(result.weights[k].at(at)) / 60;
    }
    REQUIRE(std::abs(double(value) - exponential) < 1e-6);
    REQUIRE(std::abs(double(result.mean.at(at)) - mean) < 1e-6);
  }
}

TEST_CASE("an average has the same bits on any number of ranks") {
  const Averaged one = averaged_on(1);
  for (const int ranks : {2, 3, 4}) {
    const Averaged several = averaged_on(ranks);
    CHECK((several.weights == one.weights));
    CHECK((several.exponential == one.exponential));
    CHECK((several.mean == one.mean));
  }
}

TEST_CASE("the first update copies the weights, to the bit, and later weights are never 1 by rounding of small ones") {
  CHECK(average_weight(kExponential, 0, 5) == 1);
  CHECK(average_weight(kMean, 0, 5) == 1);
  CHECK(average_weight(kMean, 1, 5) == 0.5);
  CHECK(average_weight(kMean, 2, 5) == 1.0 / 3);
  CHECK(average_weight(kExponential, 7, 700) == Approx(0.5).epsilon(1e-15));
  const AverageOptions slow{.name = "slow", .half_life = TrainingLength::tokens(1e15)};
  CHECK(average_weight(slow, 7, 1) == Approx(std::log(2) * 1e-15).epsilon(1e-12));  // 1 - 0.5^x has no digit of it
}

// Whole weights of every unit, as the model gets them.
RANKS_CASE("a look through an average shows it to the model, and leaves every bit as it was") {
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    for (const bool throws : {false, true}) {
      const ParamTable table = uneven_table();
      const MeshGroups groups(world.comm(), 1);
      Backend backend = make_cpu_backend();
      const auto stream = backend.device->make_stream();
      MemoryPlan plan;
      ShardedParameters parameters(table, groups.mesh(), backend, {.compute = compute}, plan);
      Averages averages({kMean}, parameters, plan);
      const Arena arena(plan, *backend.device);
      parameters.commit(arena);
      averages.commit(arena, *stream);
      const auto first_weights = [&] {
        std::vector<float> values;
        for (int64_t u = 0; u < std::ssize(table.units); ++u) {
          const Tensor matrix = parameters.acquire(u, *stream)[0];
          stream->synchronize();
          values.push_back(compute == DType::kF32 ? matrix.as<float>()[3] : to_float(matrix.as<bf16>()[3]));
          parameters.release(u);
        }
        return values;
      };
      const auto bytes_of = [](Tensor tensor) {
        return std::string(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
      };
      const auto all_bytes = [&] {
        stream->synchronize();
        return bytes_of(parameters.master()) + bytes_of(parameters.weights()) + bytes_of(averages.state()[0].tensor);
      };
      for (const uint64_t seed : {3, 1}) {
        parameters.initialize(seed, *stream);
        averages.update({1}, *stream);  // a copy, whatever was there
        CHECK((bytes_of(averages.state()[0].tensor) == bytes_of(parameters.master())));
      }
      const std::vector<float> averaged = first_weights();
      parameters.initialize(2, *stream);
      const std::vector<float> live = first_weights();
      const std::string before = all_bytes();
      std::vector<float> seen;
      const auto look = [&] {
        averages.with(0, *stream, [&] {
          seen = first_weights();
          if (throws) throw std::runtime_error("stopped");
        });
      };
      if (throws) {
        CHECK_THROWS_WITH(look(), Catch::Contains("stopped"));
      } else {
        look();
      }
      CHECK((seen == averaged && averaged != live));
      CHECK((all_bytes() == before));
      CHECK((first_weights() == live));
    }
  }
}
