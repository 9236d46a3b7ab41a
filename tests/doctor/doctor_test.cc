// All checks together, on ranks that are threads.
#include "doctor/doctor.h"

#include <catch2/catch.hpp>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "base/process.h"
#include "comm/data_comm.h"
#include "comm/plan_comm.h"
#include "doctor/planted.h"
#include "plan/small_run.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

// The run of all ranks, in rank 0's directory.
DoctorOptions small_doctor(const std::string& directory) {
  RunConfig config = small_run();
  config.run.output_dir = directory;
  config.data.sequence_length = 8;
  config.training.max_steps = 1;
  config.training.global_batch_tokens = 12 * config.data.sequence_length;
  config.training.micro_batch_size = {1};
  config.runtime.backend = BackendKind::kCpu;
  return {.version = "tokamak 0.1.0",
          .read_config = [config] { return ReadConfig{.config = config, .text = "the text"}; },
          .burn_in = {.seconds = 0.05, .most = 48},
          .collectives = {.most_bytes = 1 << 16, .seconds = 0.1},
          .pairs = {.bytes = 1 << 14, .seconds = 60},
          .disk = {.bytes = 1 << 20, .seconds = 10}};
}

bool blames_nobody(const CheckResult& check) {
  return std::all_of(check.notes.begin(), check.notes.end(), [](const Note& note) { return note.host.empty(); });
}

const CheckResult& named(const DoctorReport& report, const std::string& name) {
  return *std::find_if(report.checks.begin(), report.checks.end(),
                       [&](const CheckResult& c) { return c.name == name; });
}

DoctorReport report_of(const std::vector<CheckResult>& checks) {
  DoctorReport report;
  report.checks = checks;
  return report;
}

}  // namespace

RANKS_CASE("a sound job may start, and every rank has the same report") {
  const TempDir own;
  TimeLimit deadline(600);
  DoctorOptions options = small_doctor(shared_path(world.comm(), own));
  int shown = 0;
  options.show = [&](const CheckResult&) { ++shown; };
  const DoctorReport report = run_doctor(world, deadline, options);
  std::string text;
  for (const CheckResult& check : report.checks)
    text += str(check.name, " ", name_of(check.status), "\n", notes_of(check));
  for (const CheckResult& check : report.checks) {
    if (check.name == "burn-in") continue;  // other processes may slow a rank
    CHECK(str(check.name, " ", name_of(check.status), notes_of(check)).find("fail") == std::string::npos);
  }
  CHECK(named(report, "memory").value.find(" planned of ") != std::string::npos);
  CHECK(named(report, "gpus").status == Status::kSkipped);
  CHECK((named(report, "pairs").status == Status::kSkipped) == (world.size() == 1));
  CHECK(shown == (world.rank() == 0 ? static_cast<int>(report.checks.size()) : 0));
  const std::vector<std::string> all = world.comm().gather_all(text);
  CHECK(std::count(all.begin(), all.end(), text) == world.size());
}

RANKS_CASE("a config that differs on one rank keeps the job from starting, and what does not depend on it is checked") {
  if (world.size() < 2) return;
  const TempDir own;
  TimeLimit deadline(600);
  DoctorOptions options = small_doctor(shared_path(world.comm(), own));
  const auto read = options.read_config;
  options.read_config = [&] {
    ReadConfig config = read();
    if (world.rank() == 1) config.text = "another text";
    return config;
  };
  const DoctorReport report = run_doctor(world, deadline, options);
  CHECK(report.exit_code() == 2);
  CHECK(named(report, "config").status == Status::kFail);
  CHECK(named(report, "disk").status == Status::kSkipped);
  CHECK(named(report, "device").status == Status::kSkipped);
  CHECK(named(report, "collectives").status == Status::kSkipped);
  CHECK(named(report, "program").status != Status::kSkipped);
  CHECK(report.suspects() == std::vector<std::string>{host_name()});
}

RANKS_CASE("data that is not there is an error of the data, and no host's fault") {
  const TempDir own;
  TimeLimit deadline(600);
  DoctorOptions options = small_doctor(shared_path(world.comm(), own));
  const auto read = options.read_config;
  options.read_config = [&] {
    ReadConfig config = read();
    config.config.data.sources = {{.path = "nowhere"}};
    return config;
  };
  const DoctorReport report = run_doctor(world, deadline, options);
  // Not the report's code: on busy cores the burn-in may fail, too.
  const CheckResult& data = named(report, "data");
  CHECK((data.status == Status::kFail && data.kind == Kind::kData));
  CHECK(notes_of(data).find("nowhere") != std::string::npos);
  CHECK(blames_nobody(data));
}

RANKS_CASE("a run that does not fit fails with the plan's numbers") {
  const TempDir own;
  TimeLimit deadline(600);
  DoctorOptions options = small_doctor(shared_path(world.comm(), own));
  const auto read = options.read_config;
  options.read_config = [&] {
    ReadConfig config = read();
    config.config.model.hidden_size = 1 << 16;
    config.config.model.intermediate_size = 1 << 19;
    config.config.model.num_hidden_layers = 64;
    return config;
  };
  const DoctorReport report = run_doctor(world, deadline, options);
  CHECK(report.exit_code() == 5);
  CHECK(blames_nobody(named(report, "memory")));
  CHECK(named(report, "memory").status == Status::kFail);
  CHECK(says(named(report, "memory"), "the run needs "));
  CHECK(named(report, "disk").status == Status::kFail);  // nor do its checkpoints
}

RANKS_CASE(
    "the memory check keeps back what every group of the run reserves, and refuses replicas that do not divide") {
  class Gpu : public CpuDevice {
   public:
    bool uses_host_memory() const override { return false; }
    int64_t total_bytes() const override { return int64_t{80} << 30; }
    int64_t available_bytes() const override { return int64_t{70} << 30; }
  };
  const int size = world.size();
  Backend backend{std::make_unique<Gpu>(), std::make_unique<CpuOps>()};
  const auto data = make_plan_comm(size, *backend.device);
  const RankHosts peers(std::vector<std::string>(static_cast<size_t>(size), "n1"));
  RunConfig config = small_doctor("none").read_config().config;
  for (const int replicas : {1, 2, 4}) {
    config.parallelism.data_parallel_replicate_degree = replicas;
    const CheckResult result = check_memory(world, peers, backend, data.get(), config);
    if (size % replicas != 0) {
      CHECK(result.status == Status::kFail);
      CHECK(says(result, "which does not divide"));
      continue;
    }
    // Two for the world, two for the shard group, and one for the replicate group.
    const int communicators = size == 1 ? 0 : replicas == 1 || replicas == size ? 2 : 5;
    const int64_t reserve = communicators * kNcclReserveBytes;
    CHECK(result.status != Status::kFail);
    for (const Facts& facts : result.ranks) {
      CHECK(facts.number("reserve_bytes") == static_cast<double>(reserve));
      CHECK(facts.number("share_bytes") == static_cast<double>((int64_t{70} << 30) - reserve));
    }
  }
}

TEST_CASE("the exit code is that of the worst failed check, and warnings start") {
  const auto failed = [](Kind kind) { return CheckResult{.name = "c", .kind = kind, .status = Status::kFail}; };
  const CheckResult warned{.name = "c", .kind = Kind::kDevice, .status = Status::kWarn};
  CHECK(report_of({}).exit_code() == 0);
  CHECK(report_of({warned}).exit_code() == 0);
  CHECK(report_of({warned}).status() == Status::kWarn);
  CHECK(report_of({warned, failed(Kind::kConfig)}).exit_code() == 2);
  CHECK(report_of({failed(Kind::kConfig), failed(Kind::kComm)}).exit_code() == 6);
  CHECK(report_of({failed(Kind::kComm), failed(Kind::kCheckpoint)}).exit_code() == 4);
  CHECK(report_of({failed(Kind::kCheckpoint), failed(Kind::kDevice), failed(Kind::kComm)}).exit_code() == 5);
}

TEST_CASE("suspects are the hosts that failures blame, each once") {
  CheckResult check{.name = "c"};
  check.warn("n1", "slow");
  check.fail("n2", "wrong");
  check.fail("n2", "wrong again");
  check.fail("", "full");
  CHECK(report_of({check}).suspects() == std::vector<std::string>{"n2"});
}
