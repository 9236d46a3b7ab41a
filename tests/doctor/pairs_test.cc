#include "doctor/checks.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <thread>

#include "backend/backend.h"
#include "doctor/planted.h"
#include "support/ranks.h"

using namespace tokamak;
using namespace tokamak::doctor;

TEST_CASE("in a tournament each two meet exactly once, and nobody twice in a round") {
  for (int players = 1; players <= 9; ++players) {
    std::set<std::pair<int, int>> met;
    const int rounds = players + players % 2 - 1;
    for (int round = 0; round < rounds; ++round) {
      for (int player = 0; player < players; ++player) {
        const int other = opponent(player, round, players);
        CHECK(opponent(other, round, players) == player);
        if (player < other) CHECK(met.emplace(player, other).second);
      }
    }
    CHECK(met.size() == static_cast<size_t>(players * (players - 1) / 2));
  }
}

RANKS_CASE("all pairs are measured") {
  Backend backend = make_cpu_backend();
  const auto data = world.comm().split(0);
  const int n = world.size();
  for (const RankHosts& peers : {a_host_each(n), RankHosts(std::vector<std::string>(static_cast<size_t>(n), "n"))}) {
    const CheckResult result =
        check_pairs(world.comm(), *data, peers, *backend.device, {.bytes = 1 << 14, .seconds = 60});
    if (n == 1) continue;
    CHECK(result.value.find(str(n * (n - 1) / 2, " pair(s) of ")) == 0);
    for (int rank = 0; rank < n; ++rank) {
      for (int other = 0; other < n; ++other) {
        CHECK(result.ranks[static_cast<size_t>(rank)].has(str("to ", other, ", bytes_per_second")) == (rank != other));
      }
    }
  }
}

TEST_CASE("a slow host is named as what the slow pairs have in common") {
  on_threads(5, [](World& world) {
    Backend backend = make_cpu_backend();
    Planted planted;
    if (world.rank() == 3) {
      planted.in_gather = [](Tensor) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
    }
    PlantedComm data(world.comm().split(0), planted);
    const CheckResult result =
        check_pairs(world.comm(), data, a_host_each(5), *backend.device, {.bytes = 1 << 14, .seconds = 60});
    CHECK(result.status == Status::kWarn);
    CHECK(says(result, "slow pair(s) have n3 in common"));
    CHECK(says(result, "slow pair: "));
  });
}

TEST_CASE("no pair is slow where all are alike; one slow pair blames no host; unfinished rounds are said") {
  const RankHosts peers = a_host_each(4);
  const auto judged = [&](const std::vector<double>& rates) {
    CheckResult result{.name = "pairs"};
    judge_pairs(result, peers,
                {{0, 1, 1e-6, rates[0]},
                 {0, 2, 1e-6, rates[1]},
                 {0, 3, 1e-6, rates[2]},
                 {1, 2, 1e-6, rates[3]},
                 {1, 3, 1e-6, rates[4]},
                 {2, 3, 1e-6, rates[5]}});
    return result;
  };
  CHECK(judged({100, 90, 80, 70, 60, 55}).status == Status::kOk);
  const CheckResult one = judged({100, 100, 100, 100, 30, 100});
  CHECK(one.status == Status::kWarn);
  CHECK(says(one, "slow pair: n1 - n3 30 B/s"));
  CHECK(!says(one, "in common"));
}

TEST_CASE("pairs that take too long end after a round, and the result says how far they came") {
  on_threads(4, [](World& world) {
    Backend backend = make_cpu_backend();
    const auto data = world.comm().split(0);
    const CheckResult result =
        check_pairs(world.comm(), *data, a_host_each(4), *backend.device, {.bytes = 1 << 20, .seconds = -1});
    CHECK(says(result, "not finished: 1 of 3 rounds"));
    CHECK(result.value.find("2 pair(s) of hosts") == 0);
  });
}
