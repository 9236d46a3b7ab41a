// The text of a report, and the one file that several ranks write.
#include "resilience/hang_report.h"

#include <catch2/catch.hpp>
#include <thread>

#include "base/file.h"
#include "base/strings.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a report names who did not arrive, the limit and how it came about, and the calls of each rank") {
  HangReport report;
  report.limits = {.floor = 120, .ceiling = 1800};
  for (int r = 0; r < 2; ++r) {
    RankView view = {.name = str("rank ", r, " (on n", r, ")"), .host = str("n", r)};
    view.last = {{.phase = Phase::kStep, .step = 7, .idle = 161, .gaps = {.longest = 20, .passed = 3}}, 100 + r};
    view.last.collectives = 100 - r;
    view.last.limit = 160;
    report.ranks.push_back(view);
  }
  report.verdict = judge(report.ranks, 1);
  report.calls = {"  #1  gemm\n", ""};
  const std::string text = report.text("2026-01-31T12:34:56Z");
  CHECK_THAT(text, Contains("hang, found at 2026-01-31T12:34:56Z, by rank 0 (on n0)\n"));
  CHECK_THAT(text, Contains("did not arrive: rank 1 (on n1), pid 101\n"));
  CHECK_THAT(text,
             Contains("limit: 160.0 s, of rank 0 (on n0) in phase step: 8 x the longest pause so far (20.000 s)"));
  CHECK_THAT(text, Contains("rank 1 (on n1), pid 101: phase step, step 7, between calls, after 99 collective(s)"));
  CHECK_THAT(text, Contains("last calls of rank 0 (on n0), pid 100:\n  #1  gemm\n"));
  CHECK_THAT(text, Contains("last calls of rank 1 (on n1), pid 101:\n  missing: it did not answer\n"));
}

TEST_CASE("ranks that write at the same time write one file, and exactly one of them is the first") {
  const TempDir dir;
  const std::string directory = dir.path() + "/run";
  for (int hang = 0; hang < 2; ++hang) {
    forget_hang_file(directory);
    const std::string hour = str("2026-01-31T1", hang);
    std::vector<HangFile> claims(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < claims.size(); ++i) {
      threads.emplace_back([&, i] {  // each at another second
        claims[i] = claim_hang_file(directory, str(hour, ":00:0", i, "Z"));
        append_text(claims[i].path, str("rank ", i, "\n"));
      });
    }
    for (std::thread& thread : threads) thread.join();
    int firsts = 0;
    for (const HangFile& claim : claims) {
      CHECK(claim.path == claims[0].path);
      firsts += claim.first ? 1 : 0;
    }
    CHECK(firsts == 1);
    CHECK(split(read_text(claims[0].path, Kind::kBug), '\n').size() == claims.size() + 1);
  }
}

TEST_CASE("a suspect host is listed once, in a file that may be new or end without a newline") {
  const TempDir dir;
  const std::string path = dir.file("run/suspects.txt");
  CHECK(append_suspects(path, {"n1", "n2", "n1"}));
  CHECK(append_suspects(path, {"n2", "n3"}));
  CHECK(read_text(path, Kind::kBug) == "n1\nn2\nn3\n");
  write_text_atomically(path, "n1\nn2", Kind::kBug);
  CHECK(append_suspects(path, {"n2", "n4"}));
  CHECK(read_text(path, Kind::kBug) == "n1\nn2\nn4\n");
  CHECK_FALSE(append_suspects(path + "/below", {"n5"}));
}

TEST_CASE("the state of the main thread is read") { CHECK_THAT(main_thread_state(), Catch::StartsWith("R")); }

namespace {

// Rank r is on host n<r>; rank 0 has heard nothing of `silent`.
HangReport heard_by_rank_zero(int ranks, std::vector<int> silent) {
  HangReport report;
  for (int r = 0; r < ranks; ++r)
    report.ranks.push_back({.name = str("rank ", r, " (on n", r, ")"), .host = str("n", r)});
  report.verdict.silent = report.verdict.culprits = std::move(silent);
  return report;
}

}  // namespace

TEST_CASE("the suspects are the silent hosts; the own one where two or more others are all silent") {
  using Hosts = std::vector<std::string>;
  CHECK(heard_by_rank_zero(3, {2}).suspects() == Hosts{"n2"});
  CHECK(heard_by_rank_zero(2, {1}).suspects() == Hosts{"n1"});
  CHECK(heard_by_rank_zero(3, {1, 2}).suspects() == Hosts{"n0"});
  HangReport one_has_left = heard_by_rank_zero(3, {2});
  one_has_left.ranks[1].left = true;
  CHECK(one_has_left.suspects() == Hosts{"n2"});
  HangReport by_another = heard_by_rank_zero(3, {0});  // which hears of rank 0 alone
  by_another.ranks[1].hidden = true;
  by_another.by = 2;
  CHECK(by_another.suspects() == Hosts{"n0"});
}

TEST_CASE("whether rank 0 has written its verdict is read from the file") {
  const TempDir dir;
  HangReport report = heard_by_rank_zero(2, {0});
  report.calls = {"", ""};
  report.by = 1;
  const std::string path = dir.file("hang.txt");
  CHECK_FALSE(has_verdict_of_rank_zero(path));
  append_text(path, report.text("2026-01-31T12:34:56Z"));
  CHECK_FALSE(has_verdict_of_rank_zero(path));
  report.by = 0;
  append_text(path, report.text("2026-01-31T12:34:57Z"));
  CHECK(has_verdict_of_rank_zero(path));
}
