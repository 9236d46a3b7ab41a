#include "doctor/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/parallel_for.h"
#include "base/process.h"
#include "checkpoint/lock.h"
#include "checkpoint/rank_zero.h"
#include "comm/data_comm.h"
#include "doctor/clocks.h"
#include "doctor/environment.h"
#include "doctor/gpu_health.h"
#include "doctor/memory.h"
#include "doctor/program.h"
#include "doctor/same_config.h"
#include "model/flops.h"
#include "train/run_data.h"
#include "train/sampler.h"

namespace tokamak::doctor {

namespace {

// Of several failed checks, whose exit code counts: what a script can act on by other hosts comes first.
constexpr std::array kWorstFirst = {Kind::kDeviceFault, Kind::kDevice, Kind::kCheckpoint,
                                    Kind::kComm,        Kind::kData,   Kind::kConfig};

class Doctor {
 public:
  Doctor(World& world, TimeLimit& deadline, const DoctorOptions& options)
      : world_(world), comm_(world.comm()), deadline_(deadline), options_(options), peers_(all_hosts()) {}

  DoctorReport run() {
    DoctorReport report{.hosts = peers_.hosts(), .ranks = world_.size()};
    const Stopwatch watch;
    check("config", [&] { return config(); });
    check("data", [&] { return data(); });
    check("clocks", [&] { return check_clocks(comm_, peers_, unix_seconds); });
    check("device", [&] { return device(); });
    check("program", [&] { return check_program(comm_, peers_, program_facts(options_.version)); });
    check("environment", [&] { return environment(); });
    check("memory", [&] { return with_device("memory", [&] { return memory(); }); });
    check("disk", [&] { return disk(); });
    check("burn-in", [&] { return with_device("burn-in", [&] { return burn_in(); }); });
    check("gpus", [&] { return check_gpus(comm_, peers_, ask_nvml); });
    check("collectives", [&] { return among_ranks("collectives", [&] { return collectives(); }); });
    check("pairs", [&] {
      return among_ranks("pairs", [&] { return check_pairs(comm_, *data_, peers_, *backend_.device, options_.pairs); });
    });
    report.checks = std::move(results_);
    report.gpu_libraries = gpu_libraries(loaded_libraries());
    report.config = std::move(config_);
    report.seconds = watch.seconds();
    return report;
  }

 private:
  std::vector<std::string> all_hosts() { return comm_.gather_all(host_name()); }

  void check(const std::string& name, const std::function<CheckResult()>& run) {
    deadline_.enter(name);
    const Stopwatch watch;
    CheckResult result;
    try {
      result = run();
    } catch (const Error& error) {  // of this rank alone, in a phase where others may wait for it
      fail(error.kind(), str("doctor, in the check '", name, "', ", peers_.name(comm_.rank()), ": ", error.what()),
           error.hint());
    }
    result.seconds = watch.seconds();
    if (comm_.rank() == 0 && options_.show) options_.show(result);
    results_.push_back(std::move(result));
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

  // Opened as the run will, by every rank.
  CheckResult data() {
    if (!config_ || config_->data.sources.empty()) return skipped("data", "no config names any");
    CheckResult result{.name = "data", .kind = Kind::kData};
    result.ranks = gather_facts(comm_, [&] {
      const GlobalBatch batch = make_global_batch(config_->training, config_->data, world_.size());
      const RunData found(*config_, RunTable(*config_, batch));
      for (const FieldError& problem : find_sample_problems(*config_)) fail(Kind::kConfig, problem.what, problem.hint);
      Facts facts;
      facts.set("tokens", found.train.tokens());
      return facts;
    });
    if (report_errors(result, peers_)) return result;
    result.value = str(human_count(result.ranks.front().number("tokens")), " tokens in ", config_->data.sources.size(),
                       " source(s)");
    expect_equal(result, peers_, "tokens", Status::kFail, "it must be the same on all nodes");
    return result;
  }

  // The backend that the run will have, but with the same bits on equal devices, which the burn-in compares; and the
  // group by which tensors travel.
  CheckResult device() {
    if (options_.read_config && !config_) return skipped("device", "the config decides it");
    CheckResult result{.name = "device", .kind = Kind::kDevice};
    runtime_ = config_ ? config_->runtime : RuntimeOptions();
    runtime_.deterministic = true;
    runtime_.autotune = Autotune::kFalse;
    const std::string cores = host_name() + affinity();
    const std::vector<std::string> all = comm_.gather_all(cores);
    ranks_on_cores_ = static_cast<int>(std::count(all.begin(), all.end(), cores));
    if (world_.size() == 1) runtime_.nccl_max_ctas = 0;
    result.ranks = gather_facts(comm_, [&] {
      backend_ = make_backend(runtime_, world_.local_rank(), ranks_on_cores_);
      Facts facts;
      facts.set("device", device_model(backend_.device->description()));
      facts.set("total_bytes", backend_.device->total_bytes());
      facts.set("available_bytes", backend_.device->available_bytes());
      return facts;
    });
    if (report_errors(result, peers_)) return result;
    result.value = result.ranks.front().text("device");
    expect_equal(result, peers_, "device", Status::kWarn, "the slowest sets the pace");
    has_device_ = true;
    try {
      data_ = make_data_comm(comm_, *backend_.device, runtime_, config_ ? config_->precision.reduce : Precision::kF32);
    } catch (const Error& error) {  // a SharedError: of all ranks
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

  CheckResult memory() {
    return check_memory(world_, peers_,
                        {.backend = &backend_, .data = data_.get(), .config = config_ ? &*config_ : nullptr});
  }

  CheckResult disk() {
    DiskOptions disk{.directory = options_.directory, .rate = options_.disk};
    if (config_) {
      if (disk.directory.empty()) disk.directory = config_->run.output_dir;
      disk.checkpoint_bytes = saved_bytes_per_parameter(config_->optimizer) * model_size(config_->model).parameters;
      disk.keep = config_->checkpoint.keep_latest;
    }
    if (disk.directory.empty()) return skipped("disk", "neither a config nor --directory was given");
    CheckResult result = check_disk(comm_, peers_, disk);
    const std::string held =
        run_on_rank_zero(comm_, [&] { return run_in_the_way(disk.directory + "/checkpoints", current_incarnation()); });
    if (!held.empty()) result.warn("", str("a run writes to ", disk.directory, " now: ", held));
    return result;
  }

  CheckResult burn_in() {
    BurnInOptions burn = options_.burn_in;
    if (config_ && config_->precision.compute == Precision::kF32) burn.dtype = DType::kF32;
    return check_burn_in(comm_, peers_, backend_, burn);
  }

  CheckResult collectives() {
    CollectivesOptions all = options_.collectives;
    if (config_ && config_->precision.reduce == Precision::kBF16) all.reduce = DType::kBF16;
    return check_collectives(comm_, *data_, peers_, *backend_.device, all);
  }

  CheckResult with_device(const std::string& name, const std::function<CheckResult()>& run) const {
    return has_device_ ? run() : skipped(name, "there is no device");
  }

  CheckResult among_ranks(const std::string& name, const std::function<CheckResult()>& run) const {
    if (world_.size() == 1) return skipped(name, "there is one rank");
    return data_ != nullptr ? run() : skipped(name, "the ranks' devices have no group");
  }

  World& world_;
  Comm& comm_;
  TimeLimit& deadline_;
  const DoctorOptions& options_;
  const RankHosts peers_;
  RuntimeOptions runtime_;
  std::optional<RunConfig> config_;
  int ranks_on_cores_ = 1;
  bool has_device_ = false;
  Backend backend_;
  std::unique_ptr<Comm> data_;  // before the backend goes
  std::vector<CheckResult> results_;
};

}  // namespace

Status DoctorReport::status() const {
  Status worst = Status::kOk;
  for (const CheckResult& check : checks) {
    if (check.status == Status::kFail) return Status::kFail;
    if (check.status == Status::kWarn) worst = Status::kWarn;
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
      if (note.status != Status::kFail || note.host.empty()) continue;
      if (std::find(once.begin(), once.end(), note.host) == once.end()) once.push_back(note.host);
    }
  }
  return once;
}

DoctorReport run_doctor(World& world, TimeLimit& deadline, const DoctorOptions& options) {
  return Doctor(world, deadline, options).run();
}

void append_suspects(const std::string& path, const std::vector<std::string>& hosts) {
  std::string text = exists(path) ? read_text(path, Kind::kConfig) : "";
  if (!text.empty() && text.back() != '\n') text += '\n';
  const std::vector<std::string> known = split(text, '\n');
  for (const std::string& host : hosts) {
    if (std::find(known.begin(), known.end(), host) == known.end()) text += host + "\n";
  }
  make_directories(parent_directory(path), Kind::kConfig);
  write_text_atomically(path, text, Kind::kConfig);
}

}  // namespace tokamak::doctor
