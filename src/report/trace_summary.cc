#include "report/trace_summary.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kMicrosecond = 1e-6;  // the format's unit, in seconds

// Takes a trace an event at a time: a file of many ranks may be large, and the writer gives each event a line.
class TraceReader {
 public:
  void see(const nlohmann::json& event) {
    if (!event.is_object() || event.value("pid", 0) != 0) return;
    const int row = event.value("tid", 0);
    const std::string name = event.value("name", "");
    const nlohmann::json values = event.value("args", nlohmann::json::object());
    if (event.value("ph", "") == "M") {
      if (name == "thread_name") rows_[row] = values.value("name", "");
    } else if (event.value("cat", "") == "step") {
      ++steps_;
    } else if (starts_with(rows_[row], kStream)) {  // else the host's row, which has the same calls once more
      add(rows_[row].substr(kStream.size()), name, event, values);
    }
  }

  std::optional<TraceSummary> summary(const std::string& file) const {
    if (operations_.empty() || steps_ == 0) return std::nullopt;
    TraceSummary result{.file = file, .steps = steps_, .seconds = kMicrosecond * (end_ - begin_)};
    for (const auto& [key, operation] : operations_) result.operations.push_back(operation);
    std::stable_sort(result.operations.begin(), result.operations.end(),
                     [](const TracedOperation& a, const TracedOperation& b) { return a.seconds > b.seconds; });
    return result;
  }

 private:
  static constexpr std::string_view kStream = "stream ";

  void add(const std::string& stream, const std::string& name, const nlohmann::json& event,
           const nlohmann::json& values) {
    const double begin = event.value("ts", 0.0), duration = event.value("dur", 0.0);
    begin_ = operations_.empty() ? begin : std::min(begin_, begin);
    end_ = operations_.empty() ? begin + duration : std::max(end_, begin + duration);
    TracedOperation& operation = operations_[{stream, name}];
    operation.stream = stream;
    operation.name = name;
    ++operation.calls;
    operation.seconds += kMicrosecond * duration;
    operation.flops += values.value("flops", 0.0);
    operation.bytes += values.value("bytes", 0.0);
    operation.exchanged += values.value("exchanged_bytes", 0.0);
  }

  std::map<int, std::string> rows_;
  std::map<std::pair<std::string, std::string>, TracedOperation> operations_;
  int64_t steps_ = 0;
  double begin_ = 0, end_ = 0;  // microseconds
};

}  // namespace

std::vector<TraceSummary> read_traces(const std::string& directory) {
  constexpr std::string_view kExtension = ".json";
  std::vector<TraceSummary> traces;
  for (const std::string& name : list_directory(directory, Kind::kConfig)) {
    if (!starts_with(name, "trace-") || name.size() < kExtension.size() ||
        name.substr(name.size() - kExtension.size()) != kExtension) {
      continue;
    }
    TraceReader reader;
    std::ifstream file(directory + "/" + name);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line.back() == ',') line.pop_back();
      reader.see(nlohmann::json::parse(line, nullptr, false));
    }
    if (auto summary = reader.summary(name)) traces.push_back(std::move(*summary));
  }
  return traces;
}

}  // namespace tokamak
