#include "monitor/run_status.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/run_files.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

constexpr std::array<const char*, 4> kStateNames = {"running", "stopped", "done", "failed"};

constexpr size_t kLongestCause = 300;

std::string path_of(const std::string& output_dir) { return run_files::at(output_dir, run_files::kStatus); }

}  // namespace

void write_run_status(const std::string& output_dir, const RunStatus& status) noexcept {
  try {
    nlohmann::ordered_json json = {{"state", kStateNames.at(static_cast<size_t>(status.state))},
                                   {"code", status.code},
                                   {"step", status.step},
                                   {"total_steps", status.total_steps},
                                   {"time", utc_timestamp()},
                                   {"incarnation", status.incarnation}};
    if (!status.cause.empty()) json["cause"] = printable(status.cause, kLongestCause);
    write_text_atomically(path_of(output_dir), json.dump() + "\n", Kind::kConfig);
  } catch (const std::exception& error) {
    log::warning("status of the run not written: ", error.what());
  }
}

std::optional<RunStatus> read_run_status(const std::string& output_dir) {
  if (!exists(path_of(output_dir))) return std::nullopt;
  try {
    const auto json = try_parse_json(read_text(path_of(output_dir), Kind::kConfig));
    const auto name = std::find(kStateNames.begin(), kStateNames.end(), json.at("state").get<std::string>());
    if (name == kStateNames.end()) return std::nullopt;
    return RunStatus{.state = static_cast<RunStatus::State>(name - kStateNames.begin()),
                     .code = whole_of<int>(json.at("code")),
                     .step = whole_of<int64_t>(json.at("step")),
                     .total_steps = whole_of<int64_t>(json.at("total_steps")),
                     .incarnation = json.at("incarnation").get<std::string>(),
                     .cause = json.value("cause", "")};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace tokamak
