// Whether a run hangs and who is named, from what the ranks said last.
#include "resilience/verdict.h"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>

#include "base/strings.h"

using namespace tokamak;
using Catch::Contains;

namespace {

constexpr double kBeat = 1;

// A rank in a step that waits in its 100th collective, with a limit of 10 s.
RankView waiting_rank(int rank, double idle) {
  RankView view = {.name = str("rank ", rank, " (on n", rank, ")"), .host = str("n", rank)};
  view.last = {{.phase = Phase::kStep, .step = 7, .idle = idle}, 100 + rank};
  view.last.collectives = 100;
  view.last.limit = 10;
  std::strcpy(view.last.inside.data(), "all_gather");
  return view;
}

std::vector<RankView> waiting_ranks(double idle) {
  return {waiting_rank(0, idle), waiting_rank(1, idle), waiting_rank(2, idle)};
}

using Ranks = std::vector<int>;

}  // namespace

TEST_CASE("one rank that gets on keeps the run from hanging, however long the others wait") {
  std::vector<RankView> ranks = waiting_ranks(100);
  ranks[1].last.idle = 9.5;
  CHECK_FALSE(judge(ranks, kBeat).hangs);
  ranks[1].last.idle = 10.5;
  CHECK(judge(ranks, kBeat).hangs);
}

TEST_CASE("the limit is that of the phase with the longest one") {
  std::vector<RankView> ranks = waiting_ranks(11);
  ranks[2].last.limit = 50;  // it saves
  CHECK_FALSE(judge(ranks, kBeat).hangs);
  for (RankView& rank : ranks) rank.last.idle = 51;
  const Verdict verdict = judge(ranks, kBeat);
  CHECK(verdict.hangs);
  CHECK(verdict.limit == 50);
  CHECK(verdict.limit_of == 2);
}

TEST_CASE("a rank that is silent for longer than the limit is named, though it said that all was well") {
  std::vector<RankView> ranks = waiting_ranks(3);
  ranks[1].last.idle = 0;
  ranks[1].last.limit = 1000;  // what it said of its phase is old
  ranks[1].heard_ago = 9;
  CHECK_FALSE(judge(ranks, kBeat).hangs);
  ranks[1].heard_ago = 11;
  const Verdict verdict = judge(ranks, kBeat);
  REQUIRE(verdict.hangs);
  CHECK(verdict.silent == Ranks{1});
  CHECK(verdict.culprits == Ranks{1});
  CHECK_THAT(verdict.reason, Contains("nothing was heard for 11.0 s of rank 1 (on n1), pid 101: stopped") &&
                                 Contains("waiting: rank 0 (on n0), pid 100; rank 2 (on n2), pid 102 in all_gather, "
                                          "phase step, step 7"));
}

TEST_CASE("a rank that speaks but has begun fewer collectives did not arrive") {
  std::vector<RankView> ranks = waiting_ranks(12);
  ranks[2].last.collectives = 99;
  std::strcpy(ranks[2].last.inside.data(), "gemm qkv forward");
  const Verdict verdict = judge(ranks, kBeat);
  REQUIRE(verdict.hangs);
  CHECK(verdict.silent.empty());
  CHECK(verdict.culprits == Ranks{2});
  CHECK_THAT(verdict.reason,
             Contains("rank 2 (on n2), pid 102 did not arrive (phase step, step 7, in gemm qkv forward, "
                      "after 99 collective(s)"));
}

TEST_CASE("where all have come as far, nobody is named") {
  const Verdict verdict = judge(waiting_ranks(12), kBeat);
  REQUIRE(verdict.hangs);
  CHECK(verdict.culprits.empty());
  CHECK_THAT(verdict.reason, Contains("none is behind the others") && Contains("rank 1 (on n1), pid 101"));
}

TEST_CASE("a lost connection is a hang at once, a rank that has left in good order is none") {
  std::vector<RankView> ranks = waiting_ranks(1);
  ranks[2].left = true;
  ranks[2].heard_ago = 1000;
  CHECK_FALSE(judge(ranks, kBeat).hangs);
  ranks[1].lost = true;
  CHECK(judge(ranks, kBeat).hangs);
  CHECK(judge(ranks, kBeat).culprits == Ranks{1});
}

TEST_CASE("a run of one rank hangs by itself") {
  CHECK_FALSE(judge({waiting_rank(0, 9)}, kBeat).hangs);
  CHECK(judge({waiting_rank(0, 11)}, kBeat).culprits == Ranks{0});
}

TEST_CASE("no limit, no hang") {
  std::vector<RankView> ranks = waiting_ranks(1e6);
  for (RankView& rank : ranks) rank.last.limit = 0;
  CHECK_FALSE(judge(ranks, kBeat).hangs);
}

TEST_CASE("a heartbeat arrives as it was sent, and nothing else is taken for one") {
  const Heartbeat sent = waiting_rank(3, 4.5).last;
  Heartbeat read;
  REQUIRE(read_heartbeat(message(sent), read));
  CHECK(read.text() == sent.text());
  CHECK(read.pid == 103);
  CHECK_FALSE(read_heartbeat(message(MessageKind::kHeartbeat, "short"), read));
  const auto refused = [&](size_t offset, char byte) {
    std::string bytes = message(sent);
    bytes[1 + offset] = byte;
    return !read_heartbeat(bytes, read) && read.pid == 103;
  };
  CHECK(refused(offsetof(RunProgress::Reading, phase), static_cast<char>(kPhases)));
}

TEST_CASE("who is missing is named before any limit is over: the silent, else those behind") {
  std::vector<RankView> ranks = waiting_ranks(5);
  CHECK(missing_ranks(ranks, kBeat).empty());
  ranks[1].last.collectives = 99;
  CHECK_THAT(missing_ranks(ranks, kBeat), Contains("did not arrive: rank 1 (on n1), pid 101 (in it"));
  ranks[2].heard_ago = 4;
  CHECK_THAT(missing_ranks(ranks, kBeat),
             Contains("did not arrive: rank 2 (on n2), pid 102 (nothing heard for 4.0 s)"));
}
