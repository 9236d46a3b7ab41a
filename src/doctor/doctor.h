// `tokamak doctor`: runs all checks in order, on all ranks, before a job starts. A check whose prerequisite failed is
// skipped by name. Warnings never keep a run from starting.
#pragma once

#include <optional>

#include "doctor/checks.h"
#include "doctor/time_limit.h"

namespace tokamak::doctor {

// The config of this rank, and its resolved text.
struct ReadConfig {
  RunConfig config;
  std::string text;
};

struct DoctorOptions {
  std::string version;
  std::function<ReadConfig()> read_config;       // empty: the doctor checks the machine alone
  std::string directory;                         // of checkpoints; "": the config's; no config: no check of a disk
  std::function<void(const CheckResult&)> show;  // called on rank 0 after each check
  BurnInOptions burn_in;
  CollectivesOptions collectives;
  PairsOptions pairs;
  DiskRateOptions disk;
};

struct DoctorReport {
  std::vector<std::string> hosts;
  int ranks = 1;
  double seconds = 0;
  std::vector<CheckResult> checks;
  std::optional<RunConfig> config;
  std::vector<std::string> gpu_libraries;  // real paths of NVIDIA's in rank 0, to show if two are installed

  Status status() const;                      // the worst
  int exit_code() const;                      // 0, or that of the worst check that failed
  std::vector<std::string> suspects() const;  // the hosts that failed checks blame, each once
};

DoctorReport run_doctor(World& world, TimeLimit& deadline, const DoctorOptions& options);

}  // namespace tokamak::doctor
