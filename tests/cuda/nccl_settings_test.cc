#include "cuda/nccl/settings.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/strings.h"
#include "comm/exchange.h"

using namespace tokamak;

TEST_CASE("the NCCL variables of an environment are listed in the order of their names") {
  const char* const some[] = {"PATH=/bin", "NCCL_IB_HCA=mlx5", "MY_NCCL_X=1", "NCCL_DEBUG=INFO", "NCCL=1", nullptr};
  CHECK(nccl_settings(some) == "NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5");
  const char* const none[] = {nullptr};
  CHECK(nccl_settings(none).empty());
}

TEST_CASE("communicators launch in the order of the calls, but for what the user has set") {
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  order_launches();
  const char* const set = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  REQUIRE(set != nullptr);
  CHECK(std::string(set) == "1");
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  order_launches();
  CHECK(std::string(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT")) == "0");
}

TEST_CASE("sums that must be the same go along rings, and what the user has set instead stays, with a warning") {
  unsetenv("NCCL_ALGO");
  CHECK(fix_order_of_sums().empty());
  CHECK(std::string(std::getenv("NCCL_ALGO")) == "Ring");
  for (const char* const fixed : {"ring", "Tree", "RING,tree", "tree;allreduce:ring", "reducescatter:Ring"}) {
    setenv("NCCL_ALGO", fixed, 1);
    INFO(fixed);
    CHECK(fix_order_of_sums().empty());
    CHECK(std::string(std::getenv("NCCL_ALGO")) == fixed);
  }
  for (const char* const open : {"NVLS", "Ring,NVLS", "^Tree", "Ring;allreduce:CollnetDirect", "^NVLS", ""}) {
    setenv("NCCL_ALGO", open, 1);
    INFO(open);
    CHECK_THAT(fix_order_of_sums(), Catch::Contains(str("NCCL_ALGO=", open, " ")));
    CHECK(std::string(std::getenv("NCCL_ALGO")) == open);
  }
  unsetenv("NCCL_ALGO");
}

TEST_CASE("ranks that share a GPU are hosts of their own to NCCL, but for what the user has set") {
  setenv("NCCL_IB_DISABLE", "0", 1);
  unsetenv("NCCL_HOSTID");
  let_ranks_share_gpu(3);
  CHECK(std::string(std::getenv("NCCL_HOSTID")).ends_with("-rank-3"));
  CHECK(std::string(std::getenv("NCCL_IB_DISABLE")) == "0");
  CHECK(std::string(std::getenv("NCCL_SOCKET_IFNAME")) == "lo");
}

TEST_CASE("the rounds of an exchange cover a slice in aligned pieces, and their scratch is bounded") {
  for (const int ranks : {1, 2, 3, 7, 64, 1024, 100000}) {
    for (const int64_t slice : {int64_t{64}, int64_t{1} << 20, int64_t{3} << 32}) {
      const ExchangeRounds rounds{ranks, slice};
      INFO(ranks << " ranks, " << slice);
      CHECK(rounds.longest_piece() > 0);
      CHECK(rounds.longest_piece() <= slice);
      CHECK(rounds.longest_piece() % ExchangeRounds::kGrain == 0);
      CHECK(rounds.scratch_elements() == 2 * ranks * rounds.longest_piece());
      const int64_t sets = rounds.longest_piece() < slice ? 2 : 1;  // of rounds in flight
      CHECK(nccl_scratch_elements(ranks, slice, DType::kBF16) == sets * rounds.scratch_elements());
      CHECK(nccl_scratch_elements(ranks, slice, DType::kF32) == 0);
      CHECK(host_scratch_elements(ranks, slice) <= std::max<int64_t>(8 << 20, 2 * ranks * ExchangeRounds::kGrain));
      if (ranks * ExchangeRounds::kGrain <= ExchangeRounds::kElements) {
        CHECK(rounds.scratch_elements() <= 2 * ExchangeRounds::kElements);
      }
    }
  }
}
