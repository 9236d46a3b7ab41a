#include "doctor/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/parallel_for.h"
#include "base/process.h"
#include "base/run_files.h"
#include "checkpoint/lock.h"
#include "comm/data_comm.h"
#include "comm/rank_zero.h"
#include "model/flops.h"
#include "model/parameters.h"
#include "optim/optimizer.h"
#include "train/run_data.h"
#include "train/sampler.h"

namespace tokamak::doctor {

namespace {

// If several checks fail, the first of these kinds gives the exit code. Faults that other hosts can avoid come first.
constexpr std::array kWorstFirst = {Kind::kDeviceFault, Kind::kDevice, Kind::kCheckpoint,
                                    Kind::kComm,        Kind::kData,   Kind::kConfig};

class Doctor {
 public:
  Doctor(World& world, TimeLimit& deadline, const DoctorOptions& options)
      : world_(world),
        comm_(world.comm()),
        deadline_(deadline),
        options_(options),
        peers_(comm_.gather_all(host_name())) {}

  DoctorReport run() {
    const Stopwatch watch;
    check("config", "", [&] { return config(); });
    check("data", "", [&] { return data(); });
    check("clocks", "", [&] { return check_clocks(comm_, peers_, unix_seconds); });
    check("device", "", [&] { return device(); });
    check("program", "", [&] { return check_program(comm_, peers_, program_facts(options_.version)); });
    check("environment", "", [&] { return environment(); });
    check("memory", needs_device(), [&] { return check_memory(world_, peers_, backend_, data_.get(), config_); });
    check("disk", "", [&] { return disk(); });
    check("burn-in", needs_device(), [&] { return burn_in(); });
    check("gpus", "", [&] { return check_gpus(comm_, peers_, ask_nvml); });
    check("collectives", needs_group(), [&] { return collectives(); });
    check("pairs", needs_group(), [&] { return check_pairs(comm_, *data_, peers_, *backend_.device, options_.pairs); });
    return {.hosts = peers_.hosts(),
            .ranks = world_.size(),
            .seconds = watch.seconds(),
            .checks = std::move(results_),
            .config = std::move(config_),
            .gpu_libraries = gpu_libraries(loaded_libraries())};
  }

 private:
  // `missing`: why the check cannot run; "" if it can.
  void check(const std::string& name, const std::string& missing, const std::function<CheckResult()>& run) {
    deadline_.enter(name);
    const Stopwatch watch;
    CheckResult result;
    try {
      result = missing.empty() ? run() : skipped(name, missing);
    } catch (const Error& error) {  // only this rank throws, and the others may wait for it
      fail(error.kind(), str("doctor, in the check '", name, "', ", peers_.name(comm_.rank()), ": ", error.what()),
           error.hint());
    }
    result.seconds = watch.seconds();
    if (comm_.rank() == 0 && options_.show) options_.show(result);
    results_.push_back(std::move(result));
  }

  std::string needs_device() const { return has_device_ ? "" : "there is no device"; }
  std::string needs_group() const {
    return world_.size() == 1 ? "there is one rank" : data_ == nullptr ? "the ranks' devices have no group" : "";
  }

  CheckResult config() {
    if (!options_.read_config) return skipped("config", "none was given");
    std::optional<RunConfig> read;
    CheckResult result = check_config(comm_, peers_, [&] {
      ReadConfig own = options_.read_config();
      read = std::move(own.config);
      return own.text;
    });
    if (result.status != Status::kFail) config_ = std::move(read);
    return result;
  }

  // Every rank opens the data as the run will. Text that no run has tokenized yet is looked at instead.
  CheckResult data() {
    if (options_.read_config && !config_) return skipped("data", "the config decides it");
    if (!config_ || (config_->data.sources.empty() && config_->stages.empty()))
      return skipped("data", "no config names any");
    CheckResult result{.name = "data", .kind = Kind::kData};
    std::vector<SourceOptions> text;
    const bool opened = measure(result, comm_, peers_, [&](Facts& facts) {
      const RunTable table(*config_);
      for (const StageRow& row : table.rows()) make_row_batch(*config_, row, world_.size());
      RunConfig config = *config_;
      text = take_out_text(config);
      facts.set("untokenized", std::ssize(text));
      facts.set("opened", std::ssize(config_at_step(config, 1).data.sources));
      int64_t tokens = 0;  // of the first stage's data
      if (text.empty()) stage_places(config, table);
      for (const StageRow& row : stage_rows(config)) {
        const RunConfig own = config_of_row(config, row);
        if (!own.data.sources.empty()) {
          const RunData found(own);
          if (row.first_step == 1) tokens = found.train.tokens();
        }
        for (const FieldError& one : find_sample_problems(config_at_step(*config_, row.first_step))) {
          fail(Kind::kConfig, one.what, one.hint);
        }
      }
      facts.set("tokens", tokens);
    });
    if (!opened) return result;
    const Facts& lead = result.ranks.front();
    if (lead.number("opened") > 0) {
      result.value = str(human_count(lead.number("tokens")), " tokens in ", lead.number("opened"), " source(s)");
    }
    if (lead.number("untokenized") > 0) judge_text(result, comm_, peers_, *config_, text);
    expect_equal(result, peers_, "tokens", Status::kFail, "it must be the same on all nodes");
    return result;
  }

  // The backend and the data group of the run. It is deterministic here, because the burn-in compares bits.
  CheckResult device() {
    if (options_.read_config && !config_) return skipped("device", "the config decides it");
    CheckResult result{.name = "device", .kind = Kind::kDevice};
    RuntimeOptions runtime = config_ ? config_->runtime : RuntimeOptions();
    runtime.deterministic = true;
    runtime.autotune = Autotune::kFalse;
    if (world_.size() == 1) runtime.nccl_max_ctas = 0;
    ranks_on_cores_ = world_.ranks_on_cores();
    has_device_ = measure(result, comm_, peers_, [&](Facts& facts) {
      backend_ = make_backend(runtime, world_.local_rank(), ranks_on_cores_);
      facts.set("device", device_model(backend_.device->description()));
      facts.set("total_bytes", backend_.device->total_bytes());
      facts.set("available_bytes", backend_.device->available_bytes());
    });
    if (!has_device_) return result;
    result.value = result.ranks.front().text("device");
    expect_equal(result, peers_, "device", Status::kWarn, "the slowest sets the pace");
    try {
      data_ = make_data_comm(comm_, *backend_.device, runtime, config_ ? config_->precision.reduce : Precision::kF32);
    } catch (const Error& error) {  // all ranks throw it
      result.kind = error.kind();
      result.fail("", str(error.what(), error.hint().empty() ? "" : str(" (", error.hint(), ")")));
    }
    return result;
  }

  CheckResult environment() {
    return check_environment(comm_, peers_, [](const char* name) { return std::getenv(name); },
                             {.ranks = world_.size(),
                              .hosts = static_cast<int>(peers_.hosts().size()),
                              .ranks_on_cores = ranks_on_cores_,
                              .ranks_on_host = world_.local_size(),
                              .threads = thread_count(),
                              .cores = available_cores(),
                              .host_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                              .on_gpu = has_device_ && !backend_.device->uses_host_memory()});
  }

  CheckResult disk() {
    DiskOptions disk{.directory = options_.directory, .rate = options_.disk};
    if (config_) {
      if (disk.directory.empty()) disk.directory = config_->run.output_dir;
      disk.checkpoint_bytes =
          saved_bytes(config_->optimizer, make_param_table(config_->model), std::ssize(config_->averages));
      disk.keep = config_->checkpoint.keep_latest;
    }
    if (disk.directory.empty()) return skipped("disk", "neither a config nor --directory was given");
    CheckResult result = check_disk(comm_, peers_, disk);
    const std::string held = text_of_rank_zero(comm_, [&] {
      return run_in_the_way(run_files::at(disk.directory, run_files::kCheckpoints), current_incarnation());
    });
    if (!held.empty()) result.warn("", str("a run writes to ", disk.directory, " now: ", held));
    return result;
  }

  CheckResult burn_in() {
    BurnInOptions burn = options_.burn_in;
    if (config_) burn.dtype = compute_dtype(config_->precision);
    return check_burn_in(comm_, peers_, backend_, burn);
  }

  CheckResult collectives() {
    CollectivesOptions all = options_.collectives;
    if (config_) all.reduce = reduce_dtype(config_->precision);
    return check_collectives(comm_, *data_, peers_, *backend_.device, all);
  }

  World& world_;
  Comm& comm_;
  TimeLimit& deadline_;
  const DoctorOptions& options_;
  const RankHosts peers_;
  std::optional<RunConfig> config_;
  int ranks_on_cores_ = 1;
  bool has_device_ = false;
  Backend backend_;
  std::unique_ptr<Comm> data_;  // destroyed before the backend
  std::vector<CheckResult> results_;
};

}  // namespace

Status DoctorReport::status() const {
  Status worst = Status::kOk;
  for (const CheckResult& check : checks) {
    if (check.status != Status::kSkipped) worst = std::max(worst, check.status);
  }
  return worst;
}

int DoctorReport::exit_code() const {
  if (status() != Status::kFail) return 0;
  const auto failed_with = [&](Kind kind) {
    return std::any_of(checks.begin(), checks.end(),
                       [&](const CheckResult& check) { return check.status == Status::kFail && check.kind == kind; });
  };
  const auto* const worst = std::find_if(kWorstFirst.begin(), kWorstFirst.end(), failed_with);
  return static_cast<int>(worst == kWorstFirst.end() ? Kind::kBug : *worst);
}

std::vector<std::string> DoctorReport::suspects() const {
  std::vector<std::string> once;
  for (const CheckResult& check : checks) {
    for (const Note& note : check.notes) {
      const bool known = std::find(once.begin(), once.end(), note.host) != once.end();
      if (note.status == Status::kFail && !note.host.empty() && !known) once.push_back(note.host);
    }
  }
  return once;
}

DoctorReport run_doctor(World& world, TimeLimit& deadline, const DoctorOptions& options) {
  return Doctor(world, deadline, options).run();
}

}  // namespace tokamak::doctor
