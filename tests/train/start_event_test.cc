#include "train/run_records.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/clock.h"
#include "base/process.h"

using namespace tokamak;

namespace {

constexpr int64_t kAge = 1'000'000;  // of the process, in seconds

MetricRecord record_with(const std::map<std::string, std::string>& environment) {
  return start_record({.program = "tokamak 1",
                       .command = "tokamak train a.yaml",
                       .startup = StartupClock(kAge),
                       .incarnation = "i",
                       .ranks = 4,
                       .hosts = "n1,n2"},
                      [&](const char* name) -> const char* {
                        const auto found = environment.find(name);
                        return found == environment.end() ? nullptr : found->second.c_str();
                      });
}

}  // namespace

TEST_CASE("a start says who it is, and its job and attempt where the environment knows them") {
  const MetricRecord alone = record_with({});
  CHECK(alone.event->detail == "4 rank(s)");
  const int64_t expected = unix_milliseconds() - 1000 * kAge;
  CHECK(std::abs(parse_utc(alone.event->text("exec")).value() - expected) < 1000 * kAge / 2);
  CHECK((alone.event->text("incarnation") == "i" && alone.event->text("hosts") == "n1,n2" && alone.at("ranks") == 4));
  CHECK((alone.event->text("program") == "tokamak 1" && alone.event->text("system") == system_name()));
  CHECK(alone.event->text("command") == "tokamak train a.yaml");
  CHECK((alone.values.size() == 1 && alone.event->texts.size() == 6));
  const MetricRecord in_job = record_with(
      {{"TOKAMAK_JOB", "series"}, {"TOKAMAK_ATTEMPT", "2"}, {"SLURM_JOB_ID", "77"}, {"SLURM_RESTART_COUNT", "3"}});
  CHECK((in_job.event->text("job") == "series" && in_job.event->text("slurm_job") == "77"));
  CHECK((in_job.at("attempt") == 2 && in_job.at("slurm_restarts") == 3));
  CHECK_FALSE(record_with({{"TOKAMAK_ATTEMPT", "often"}}).has("attempt"));
}
