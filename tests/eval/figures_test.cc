// Means, errors and groups: lm-evaluation-harness 0.4.13 gives the same numbers.
#include "eval/figures.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace tokamak {
namespace {

TEST_CASE("a mean has the error of its sample; one item has none") {
  const std::vector<double> values = {1, 0, 0, 1, 1};
  const Figure figure = mean_figure(values);
  CHECK(figure.value == 0.6);
  CHECK(*figure.error == Approx(std::sqrt(0.3 / 5)).epsilon(1e-14));
  CHECK(figure.items == 5);
  CHECK(!mean_figure(std::span(values).first(1)).error);
}

TEST_CASE("a perplexity is of the mean; its error is a bootstrap's, by CPython's numbers") {
  const std::vector<double> values = {-0.5, -1.25, -3.0, -0.125, -2.0};
  const Figure figure = perplexity_figure(values, 2000);
  CHECK(figure.value == Approx(std::exp(1.375)).epsilon(1e-14));
  CHECK(*figure.error == Approx(2.2963534854288237).epsilon(1e-9));
  CHECK(*perplexity_figure(values, 10).error == Approx(2.169515744340828).epsilon(1e-9));
  CHECK(!perplexity_figure(values, 0).error);
}

TEST_CASE("a group's mean is weighted by items, and its error pooled") {
  const Figure parts[] = {{0.25, std::sqrt(0.25 * 0.75 / 99), 100}, {0.5, std::sqrt(0.25 / 299), 300}};
  const Figure pooled = pooled_figure(parts);
  CHECK(pooled.value == 0.4375);
  CHECK(*pooled.error == Approx(0.024266889160906857).epsilon(1e-14));
  CHECK(pooled.items == 400);
  const Figure with_single[] = {parts[0], {1, {}, 1}};
  CHECK(!pooled_figure(with_single).error);
}

}  // namespace
}  // namespace tokamak
