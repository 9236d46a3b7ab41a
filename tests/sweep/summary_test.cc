#include "sweep/summary.h"

#include <catch2/catch.hpp>

using namespace tokamak;
using Catch::Contains;

namespace {

SweepRow row(const std::string& lr, int64_t seed, double loss, SweepStatus status = SweepStatus::kDone) {
  return {
      .overrides = {{"optimizer.lr", lr}, {"optimizer.name", "adamw"}}, .seed = seed, .loss = loss, .status = status};
}

}  // namespace

TEST_CASE("Student's t at 95 % is that of tables") {
  // R 4.3, qt(0.975, df)
  REQUIRE(student_t95(1) == Approx(12.706204736).epsilon(1e-9));
  REQUIRE(student_t95(2) == Approx(4.302652730).epsilon(1e-9));
  REQUIRE(student_t95(3) == Approx(3.182446305).epsilon(1e-9));
  REQUIRE(student_t95(4) == Approx(2.776445105).epsilon(1e-9));
  REQUIRE(student_t95(9) == Approx(2.262157163).epsilon(1e-9));
  REQUIRE(student_t95(30) == Approx(2.042272456).epsilon(1e-9));
}

TEST_CASE("mean, s and interval are of the sample") {
  const SampleStatistics of = statistics_of({4.0, 4.2, 4.1});
  REQUIRE(of.mean == Approx(4.1));
  REQUIRE(of.deviation == Approx(0.1));  // 0.0816 with n instead of n - 1
  REQUIRE(of.half_width() == Approx(4.302652730 * 0.1 / std::sqrt(3.0)));
  REQUIRE(std::isnan(statistics_of({4.0}).half_width()));
}

TEST_CASE("arms differ in overrides, and are compared with the best over the seeds that both have finished") {
  const std::vector<SweepArm> arms =
      arms_of({row("0.1", 1, 5.0), row("0.1", 2, 5.4), row("0.2", 2, 4.1), row("0.2", 1, 4.0), row("0.2", 3, 4.2),
               row("0.4", 1, 9.0, SweepStatus::kDiverged), row("0.1", 3, 1.0, SweepStatus::kStopped)});
  REQUIRE(arms.size() == 3);
  REQUIRE(arms[0].overrides[0].text == "0.2");
  REQUIRE(arms[0].loss.mean == Approx(4.1));
  REQUIRE(arms[0].behind_best.mean == 0);
  REQUIRE(arms[1].loss.count == 2);
  REQUIRE(arms[1].behind_best.count == 2);
  REQUIRE(arms[1].behind_best.mean == Approx(1.15));  // (5.0 - 4.0 + 5.4 - 4.1) / 2; the means differ by 1.1
  REQUIRE(arms[1].unfinished == 1);
  REQUIRE(arms[2].loss.count == 0);
  REQUIRE(arms[2].diverged == 1);
  REQUIRE_THAT(summary_text(arms), Contains("1 diverged") && Contains("1 unfinished") && Contains("1.1500"));
}

TEST_CASE("the best value at the edge of its grid is a warning; one in the middle is none, nor a word") {
  const auto warnings = [](double low, double middle, double high) {
    return edge_warnings(arms_of({row("1e-3", 1, low), row("0.002", 1, middle), row("0.01", 1, high)}));
  };
  REQUIRE(warnings(3, 2, 3).empty());
  REQUIRE_THAT(warnings(1, 2, 3).at(0), Contains("optimizer.lr, 1e-3, is at the edge"));
  REQUIRE(warnings(3, 2, 1).size() == 1);
  REQUIRE(edge_warnings(arms_of({row("0.1", 1, 2)})).empty());
}
