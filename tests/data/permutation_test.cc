// The keyed shuffle is a bijection for every n, and looks like a shuffle.
#include "data/permutation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace tokamak;

namespace {

bool is_bijection(int64_t n, uint64_t key) {
  const Permutation permutation(n, key);
  std::vector<bool> seen(static_cast<size_t>(n), false);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t image = permutation(i);
    if (image < 0 || image >= n || seen[static_cast<size_t>(image)]) return false;
    seen[static_cast<size_t>(image)] = true;
  }
  return true;
}

}  // namespace

TEST_CASE("every element appears once, for small n and around all powers of two") {
  for (int64_t n = 1; n <= 300; ++n) {
    for (const uint64_t key : {0ull, 1ull, 0xdeadbeefcafef00dull}) {
      INFO(n);
      REQUIRE(is_bijection(n, key));
    }
  }
  for (int bits = 8; bits <= 17; ++bits) {
    for (int64_t n = (int64_t{1} << bits) - 1; n <= (int64_t{1} << bits) + 1; ++n) {
      INFO(n);
      REQUIRE(is_bijection(n, 42));
    }
  }
  for (const int64_t n : {int64_t{1} << 18, int64_t{1} << 20, int64_t{1000003}}) REQUIRE(is_bijection(n, 7));
}

TEST_CASE("the order is fixed for ever: these values are part of the format of a run") {
  const Permutation permutation(1000, 12345);
  const std::vector<int64_t> first = {permutation(0), permutation(1), permutation(2), permutation(3), permutation(999)};
  CHECK(first == std::vector<int64_t>{481, 231, 580, 626, 56});
}

TEST_CASE("sixty-four bit sizes stay in range and do not collide") {
  const int64_t n = (int64_t{1} << 61) + 12345;
  const Permutation permutation(n, 99);
  std::vector<int64_t> images;
  for (int64_t i = 0; i < 2000; ++i) images.push_back(permutation(n - 1 - i));
  for (const int64_t image : images) REQUIRE((image >= 0 && image < n));
  std::sort(images.begin(), images.end());
  CHECK(std::adjacent_find(images.begin(), images.end()) == images.end());
  CHECK(images.back() - images.front() > n / 2);
}

TEST_CASE("another key is another order") {
  const int64_t n = 10000;
  const Permutation a(n, 1);
  const Permutation b(n, 2);
  int64_t same = 0;
  for (int64_t i = 0; i < n; ++i) same += a(i) == b(i);
  CHECK(same < 10);  // one in n expected; ten or more has a probability of 1e-7
}

TEST_CASE("over many keys each element is equally likely at each place") {
  for (const int64_t n : {3, 5, 16, 17}) {
    const int64_t keys = 20000;
    std::vector<double> seen(static_cast<size_t>(n * n), 0);
    for (int64_t key = 0; key < keys; ++key) {
      const Permutation permutation(n, mix64(static_cast<uint64_t>(key)));
      for (int64_t i = 0; i < n; ++i) ++seen[static_cast<size_t>(i * n + permutation(i))];
    }
    const double expected = static_cast<double>(keys) / static_cast<double>(n);
    double chi_square = 0;
    for (const double count : seen) chi_square += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>((n - 1) * (n - 1));
    INFO("n " << n << ", chi-square " << chi_square << " with " << freedom << " degrees of freedom");
    CHECK(chi_square < freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("adjacent indices land far apart and without a pattern") {
  const int64_t n = 1 << 16;
  const Permutation permutation(n, 5);
  std::vector<double> cells(64, 0);  // where (image of i, image of i + 1) falls on an 8 x 8 board
  for (int64_t i = 0; i + 1 < n; ++i) {
    ++cells[static_cast<size_t>(permutation(i) * 8 / n * 8 + permutation(i + 1) * 8 / n)];
  }
  const double expected = static_cast<double>(n - 1) / 64;
  double chi_square = 0;
  for (const double count : cells) chi_square += (count - expected) * (count - expected) / expected;
  INFO(chi_square);
  CHECK(chi_square < 49 + 5 * std::sqrt(2 * 49.0));  // the margins are fixed: (8 - 1)^2 degrees of freedom
}
