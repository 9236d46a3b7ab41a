// Every prefix of the schedule keeps the shares to within one sample, and at(k) needs no history.
#include "data/mixture.h"

#include <numeric>

#include "tests/data/fixture.h"

using namespace tokamak;

namespace {

Mixture make(const std::vector<double>& weights) {
  std::vector<std::string> names;
  for (size_t i = 0; i < weights.size(); ++i) names.push_back("source" + std::to_string(i));
  return Mixture(weights, names);
}

}  // namespace

TEST_CASE("each source is within one sample of its share at every prefix, and its samples come in order") {
  std::vector<double> many;
  for (int i = 1; i <= 40; ++i) many.push_back(i * 0.37 + 1.0 / i);
  for (const auto& weights : std::vector<std::vector<double>>{
           {1}, {1, 1, 1}, {0.5, 0.3, 0.2}, {0.7, 0.1, 0.1, 0.1}, {3.14159, 2.71828, 1}, {0.999, 0.001}, many}) {
    const Mixture mixture = make(weights);
    const int64_t R = mixture.period();
    const auto& parts = mixture.parts();
    REQUIRE(std::accumulate(parts.begin(), parts.end(), int64_t{0}) == R);
    std::vector<int64_t> taken(weights.size(), 0);
    for (int64_t k = 0; k < 2 * R + 100; ++k) {
      const Mixture::Draw place = mixture.at(k);
      REQUIRE(place.index == taken[static_cast<size_t>(place.source)]++);
      if (k > 2000 && k % 501 != 0) continue;
      for (size_t i = 0; i < weights.size(); ++i) {
        REQUIRE(std::abs(taken[i] * R - (k + 1) * parts[i]) < R);
        REQUIRE(mixture.count(static_cast<int64_t>(i), k + 1) == taken[i]);
      }
    }
  }
}

TEST_CASE("weights that people write are kept exactly") {
  CHECK(make({1, 1, 1}).parts() == std::vector<int64_t>{1, 1, 1});
  CHECK(make({0.5, 0.3, 0.2}).parts() == std::vector<int64_t>{5, 3, 2});
  CHECK(make({97.5, 2.5}).parts() == std::vector<int64_t>{39, 1});
  CHECK(make({8}).period() == 1);
}

TEST_CASE("other weights are kept to one part in 2^16") {
  const std::vector<double> weights = {3.14159, 2.71828, 1};
  const double sum = 3.14159 + 2.71828 + 1;
  const Mixture mixture = make(weights);
  for (size_t i = 0; i < 3; ++i) {
    const double share = static_cast<double>(mixture.parts()[i]) / static_cast<double>(mixture.period());
    CHECK(std::abs(share - weights[i] / sum) < 1.0 / 65536);
  }
}

TEST_CASE("a position far away costs nothing and agrees with the period") {
  const Mixture mixture = make({0.5, 0.3, 0.2});
  const int64_t far = 10 * 123456789012345;
  CHECK(mixture.at(far + 4).source == mixture.at(4).source);
  CHECK(mixture.at(far + 4).index ==
        mixture.at(4).index + 123456789012345 * mixture.parts()[static_cast<size_t>(mixture.at(4).source)]);
}

TEST_CASE("weights that make no sense are refused by name") {
  check_fails(Kind::kConfig, {"source1", "0"}, [] { make({1, 0}); });
  check_fails(Kind::kConfig, {"source0", "-1"}, [] { make({-1, 2}); });
  check_fails(Kind::kConfig, {"source0", "nan"}, [] { make({std::nan(""), 2}); });
  check_fails(Kind::kConfig, {"source1", "share"}, [] { make({1e6, 1}); });
}
