// tokamak doctor: checks whether a run should start on these hosts, in one process or on the ranks of the run.
#include <chrono>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "base/run_files.h"
#include "cli/command.h"
#include "cli/doctor_report.h"
#include "cli/run_context.h"
#include "cli/version.h"
#include "config/load.h"
#include "config/print.h"
#include "doctor/doctor.h"
#include "resilience/hang_report.h"
#include "resilience/watchdog.h"
#include "train/run_plan.h"

namespace tokamak::cli {

namespace {

class DoctorCommand : public Command {
 public:
  explicit DoctorCommand(CLI::App* parser) {
    parser->add_option("config", path_, "YAML file of the run; without it, only the machine is checked");
    parser->add_option("overrides", overrides_, "KEY=VALUE over the file");
    parser->add_option("--directory", directory_,
                       "directory in which the run will write checkpoints (default: the config's run.output_dir)");
    parser->add_flag("--json", json_, "print one JSON object instead of the table");
    parser->add_option("--suspects", suspects_,
                       "append hosts blamed by failed checks to this file (default: suspects.txt of run.output_dir)");
    parser->add_option("--deadline", deadline_, "seconds after which a hanging rank ends the doctor, with exit code 6")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    parser->footer(
        "Exit codes: 0 start (there may be warnings), 2 config or programs that differ, 3 data, 4 checkpoint path, 5 "
        "device\nor memory, 6 communication or a check that hangs.\n\n"
        "  tokamak doctor configs/quickstart.yaml\n"
        "  srun -N2 --ntasks-per-node=8 tokamak doctor configs/llama-1b.yaml --suspects suspects.txt");
  }

  int run() override {
    doctor::TimeLimit deadline(deadline_);  // starts before the ranks meet, since one may not come
    return run_in_world([&](World& world) { return examine(world, deadline); });
  }

 private:
  // When the deadline passes, rank 0 names the missing ranks and ends all. If it cannot, the others report themselves.
  class EndOfTime {
   public:
    EndOfTime(World& world, doctor::TimeLimit& deadline) : world_(world), watchdog_(world), deadline_(deadline) {
      const Duration never{1e6};  // the deadline is the limit; only heartbeats are used
      watchdog_.configure({.limits = {.watchdog_min = never, .watchdog_max = never}, .directory = ""});
      deadline_.set_expired([this](const std::string& what) { end(what); });
    }
    ~EndOfTime() { deadline_.set_expired({}); }
    EndOfTime(const EndOfTime&) = delete;
    EndOfTime& operator=(const EndOfTime&) = delete;

   private:
    void end(const std::string& what) const {
      if (world_.rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(2));
      const std::string missing = watchdog_.missing();
      log::error(what, missing.empty() ? "" : "; ", missing, missing.empty() ? doctor::TimeLimit::kHint : "");
      log::flush();
      world_.end_all(static_cast<int>(Kind::kComm));
    }

    World& world_;
    Watchdog watchdog_;
    doctor::TimeLimit& deadline_;
  };

  int examine(World& world, doctor::TimeLimit& deadline) {
    const EndOfTime end_of_time(world, deadline);
    const bool lead = world.rank() == 0;
    doctor::DoctorOptions options{.version = version_text(), .directory = directory_};
    if (!path_.empty()) options.read_config = [this] { return read(); };
    if (!json_) options.show = [](const doctor::CheckResult& check) { print(std::cout, check); };
    const doctor::DoctorReport report = doctor::run_doctor(world, deadline, options);
    deadline.enter("end");
    if (!lead) return report.exit_code();
    if (json_) {
      std::cout << as_json(report, options.version).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
    } else {
      print_end(std::cout, report);
    }
    std::cout.flush();
    const std::vector<std::string> suspects = report.suspects();
    const std::string file = suspects_.empty() && report.config
                                 ? run_files::at(report.config->run.output_dir, run_files::kSuspects)
                                 : suspects_;
    if (!suspects.empty() && !file.empty() && !append_suspects(file, suspects)) {
      fail(Kind::kConfig, str("cannot write the suspects to ", file));
    }
    return report.exit_code();
  }

  doctor::ReadConfig read() const {
    doctor::ReadConfig own{.config = load_config(path_, overrides_), .text = ""};
    complete_from_data(own.config);
    own.text = tokamak::print_config(own.config);
    return own;
  }

  std::string path_;
  std::vector<std::string> overrides_;
  std::string directory_;
  std::string suspects_;
  double deadline_ = 60;
  bool json_ = false;
};

}  // namespace

void add_doctor(CLI::App& root, Commands& commands) {
  add_command<DoctorCommand>(root, commands, "doctor", "check hosts, disk, devices and network before a run starts");
}

}  // namespace tokamak::cli
