// `tokamak doctor`: whether this job should start. All checks in order, on all ranks; what cannot be tried because
// something before it failed is skipped by name. Warnings never keep a run from starting.
#pragma once

#include <optional>

#include "comm/world.h"
#include "doctor/burn_in.h"
#include "doctor/check.h"
#include "doctor/collectives.h"
#include "doctor/disk.h"
#include "doctor/pairs.h"
#include "doctor/time_limit.h"
#include "train/run_config.h"

namespace tokamak::doctor {

// The config as this rank reads it, and the same as text.
struct ReadConfig {
  RunConfig config;
  std::string text;
};

struct DoctorOptions {
  std::string version;
  std::function<ReadConfig()> read_config;       // none: the machine alone is checked
  std::string directory;                         // of checkpoints; "": the config's, or no check of a disk
  std::function<void(const CheckResult&)> show;  // each result as soon as it is there, on rank 0
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
  std::vector<std::string> gpu_libraries;  // of NVIDIA, that rank 0 has loaded: real paths

  Status status() const;                      // the worst
  int exit_code() const;                      // 0, or that of the worst failed check
  std::vector<std::string> suspects() const;  // hosts that failed checks blame, each once
};

DoctorReport run_doctor(World& world, TimeLimit& deadline, const DoctorOptions& options);

// Appends those hosts that the file does not name yet, a line each.
void append_suspects(const std::string& path, const std::vector<std::string>& hosts);

}  // namespace tokamak::doctor
