#include "comm/launch.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.h"

using namespace tokamak;
using Catch::Contains;

namespace {

using Set = std::map<std::string, std::string>;

ProcessLaunch launch(const Set& set) {
  return find_launch([&](const char* name) {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

// Returns the error of a launch with these variables, which must be an Error(kConfig).
std::string refusal(const Set& set) {
  try {
    launch(set);
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    return error.what();
  }
  return "nothing was thrown";
}

const Set kVariables = {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};

// Variables as Slurm 22.05 sets them for srun --mpi=none -N2 --ntasks-per-node=2, and for the script of sbatch.
const Set kStep = {{"SLURM_JOB_ID", "4711"},
                   {"SLURM_JOB_NODELIST", "n[1-4]"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_NTASKS", "4"},
                   {"SLURM_PROCID", "3"},
                   {"SLURM_STEP_ID", "2"},
                   {"SLURM_STEP_NODELIST", "n[3-4]"},
                   {"SLURM_STEP_NUM_TASKS", "4"}};
const Set kBatchScript = {{"SLURM_JOB_ID", "4711"},
                          {"SLURM_JOB_NODELIST", "n[1-2]"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NTASKS", "4"},
                          {"SLURM_PROCID", "0"}};

Set with(Set set, const Set& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}

Set without(Set set, const std::string& name) {
  set.erase(name);
  return set;
}

}  // namespace

TEST_CASE("a process without a launcher is alone, and so is a batch script's, and a step's of one task") {
  CHECK(launch({}).launcher == Launcher::kNone);
  CHECK(launch({{"MASTER_ADDR", "n1"}, {"LOCAL_RANK", "0"}}).launcher == Launcher::kNone);
  CHECK(launch(kBatchScript).launcher == Launcher::kNone);
  CHECK(launch(with(kStep, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}})).launcher == Launcher::kNone);
  CHECK(launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).launcher == Launcher::kNone);
  CHECK(launch({{"PMI_SIZE", "1"}}).launcher == Launcher::kNone);
}

TEST_CASE("what offers PMIx is MPI's, whatever else is set") {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
    CHECK(launch(with(kStep, {{name, "3"}})).launcher == Launcher::kMpi);
    CHECK(launch(with(kVariables, {{name, "3"}})).launcher == Launcher::kMpi);
  }
}

TEST_CASE("RANK and WORLD_SIZE make a rank that meets the others at MASTER_ADDR:MASTER_PORT") {
  const ProcessLaunch plain = launch(kVariables);
  CHECK(plain.launcher == Launcher::kTcp);
  CHECK(plain.rank == 2);
  CHECK(plain.size == 4);
  CHECK(plain.local_rank == -1);
  CHECK(plain.local_size == -1);
  CHECK(plain.address == "n1");
  CHECK(plain.port == 29500);
  const ProcessLaunch local = launch(with(kVariables, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}));
  CHECK(local.local_rank == 0);
  CHECK(local.local_size == 2);
  CHECK(launch(with(kStep, kVariables)).rank == 2);  // RANK is set by hand, so it overrides Slurm's
}

TEST_CASE("a step of srun without PMIx meets at its first node, on a port of its own") {
  const ProcessLaunch step = launch(kStep);
  CHECK(step.launcher == Launcher::kTcp);
  CHECK(step.rank == 3);
  CHECK(step.size == 4);
  CHECK(step.local_rank == 1);
  CHECK(step.address == "n3");
  CHECK((12000 <= step.port && step.port < 32000));
  CHECK(step.job == "Slurm job 4711.2");
  CHECK(launch(with(kStep, {{"SLURM_STEP_ID", "3"}})).port != step.port);
  CHECK(launch(with(kStep, {{"SLURM_JOB_ID", "4712"}})).port != step.port);
  CHECK(launch(with(kStep, {{"SLURM_RESTART_COUNT", "1"}})).job != step.job);
  CHECK(launch(without(kStep, "SLURM_STEP_NODELIST")).address == "n1");
  CHECK(launch(without(kStep, "SLURM_STEP_NUM_TASKS")).size == 4);
  const ProcessLaunch chosen = launch(with(kStep, {{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29500"}}));
  CHECK(chosen.address == "10.0.0.7");
  CHECK(chosen.port == 29500);
}

TEST_CASE("variables set by halves, or wrongly, are refused by name and value") {
  CHECK_THAT(refusal(without(kVariables, "WORLD_SIZE")), Contains("WORLD_SIZE is not set") && Contains("RANK is 2"));
  CHECK_THAT(refusal(without(kVariables, "RANK")), Contains("RANK is not set") && Contains("WORLD_SIZE is 4"));
  CHECK_THAT(refusal(without(kVariables, "MASTER_ADDR")), Contains("MASTER_ADDR is not set"));
  CHECK_THAT(refusal(without(kVariables, "MASTER_PORT")), Contains("MASTER_PORT is not set"));
  CHECK_THAT(refusal(with(kVariables, {{"RANK", "two"}})), Contains("RANK is 'two'"));
  CHECK_THAT(refusal(with(kVariables, {{"RANK", ""}})), Contains("RANK is ''"));
  CHECK_THAT(refusal(with(kVariables, {{"RANK", "4"}})), Contains("RANK is 4, not in 0 to 3"));
  CHECK_THAT(refusal(with(kVariables, {{"RANK", "-1"}})), Contains("RANK is -1"));
  CHECK_THAT(refusal(with(kVariables, {{"WORLD_SIZE", "4x"}})), Contains("WORLD_SIZE is '4x'"));
  CHECK_THAT(refusal(with(kVariables, {{"WORLD_SIZE", "0"}})), Contains("WORLD_SIZE is 0"));
  CHECK_THAT(refusal(with(kVariables, {{"MASTER_PORT", "65536"}})), Contains("MASTER_PORT is 65536"));
  CHECK_THAT(refusal(with(kVariables, {{"LOCAL_RANK", "4"}})), Contains("LOCAL_RANK is 4"));
  CHECK_THAT(refusal(with(kVariables, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}})), Contains("LOCAL_RANK is 2"));
  CHECK_THAT(refusal(with(kVariables, {{"LOCAL_WORLD_SIZE", "5"}})), Contains("LOCAL_WORLD_SIZE is 5"));
}

TEST_CASE("a step that Slurm's variables describe by halves is refused, not run as many times as it has tasks") {
  CHECK_THAT(refusal({{"SLURM_STEP_NUM_TASKS", "2"}}), Contains("SLURM_PROCID is not set"));
  CHECK_THAT(refusal(without(kStep, "SLURM_JOB_ID")), Contains("SLURM_JOB_ID is not set"));
  CHECK_THAT(refusal(with(kStep, {{"SLURM_PROCID", "4"}})), Contains("SLURM_PROCID is 4"));
  CHECK_THAT(refusal(with(kStep, {{"SLURM_STEP_NODELIST", "n[1-2"}})), Contains("n[1-2"));
  CHECK_THAT(refusal(with(kStep, {{"SLURM_STEP_NODELIST", ""}})), Contains("names no host"));
}

TEST_CASE("a launcher that we do not know is refused when it started several of us") {
  CHECK_THAT(refusal({{"PMI_SIZE", "2"}}), Contains("PMI_SIZE is 2"));
  // Another mpirun inside a job starts more tasks than the Slurm step, which has one task per node.
  CHECK_THAT(refusal(with(kStep, {{"PMI_SIZE", "8"}})), Contains("PMI_SIZE is 8"));
  CHECK(launch(with(kStep, {{"PMI_SIZE", "4"}})).launcher == Launcher::kTcp);  // srun --mpi=pmi2
}

TEST_CASE("the first host of Slurm's compressed lists") {
  CHECK(first_host("n1") == "n1");
  CHECK(first_host("n1,m4") == "n1");
  CHECK(first_host("n[1-3,7],m04") == "n1");
  CHECK(first_host("n[7,1-3]") == "n7");
  CHECK(first_host("gpu-[001-128]") == "gpu-001");
  CHECK(first_host("rack[02-03]n[11-14]") == "rack02n11");
  CHECK(first_host("a[3]-ib,b") == "a3-ib");
}
