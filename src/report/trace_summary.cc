#include "report/trace_summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/strings.h"
#include "formats/parse_json.h"

namespace tokamak {

namespace {

constexpr double kMicrosecond = 1e-6;  // the format's unit, in seconds

constexpr int64_t kLongestEvent = int64_t{1} << 20;  // bytes; the writer's have some hundred

constexpr int64_t kLargestTrace = int64_t{4} << 30;  // bytes

using EventJson = nlohmann::json;

const EventJson& member(const EventJson& object, const char* name) {
  static const EventJson kMissing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kMissing : *found;
}

std::string text_in(const EventJson& object, const char* name) {
  const EventJson& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

// Nothing where it is there and no number.
std::optional<double> number_in(const EventJson& object, const char* name) {
  const EventJson& value = member(object, name);
  if (value.is_null()) return 0;
  const double number = value.is_number() ? value.get<double>() : HUGE_VAL;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// What of an event counts; nothing where a value is of another type.
struct Span {
  double process = 0, row = 0, begin = 0, duration = 0, flops = 0, bytes = 0, exchanged = 0;
};

std::optional<Span> span_of(const EventJson& event) {
  const EventJson& values = member(event, "args");
  if (!event.is_object() || !(values.is_null() || values.is_object())) return std::nullopt;
  Span span;
  const auto take = [](std::optional<double> number, double& into) {
    into = number.value_or(0);
    return number.has_value();
  };
  const bool is_sound = take(number_in(event, "pid"), span.process) && take(number_in(event, "tid"), span.row) &&
                        take(number_in(event, "ts"), span.begin) && take(number_in(event, "dur"), span.duration) &&
                        take(number_in(values, "flops"), span.flops) && take(number_in(values, "bytes"), span.bytes) &&
                        take(number_in(values, "exchanged_bytes"), span.exchanged);
  return is_sound ? std::optional(span) : std::nullopt;
}

// Takes a trace an event at a time: a file of many ranks may be large, and the writer gives each event a line. Events that
// are not as the writer makes them are skipped.
class TraceReader {
 public:
  void see(const EventJson& event) {
    const std::optional<Span> span = span_of(event);
    if (!span || span->process != 0) return;
    const std::string name = text_in(event, "name");
    if (text_in(event, "ph") == "M") {
      if (name == "thread_name") rows_[span->row] = text_in(member(event, "args"), "name");
    } else if (text_in(event, "cat") == "step") {
      ++steps_;
    } else if (const auto row = rows_.find(span->row); row != rows_.end() && starts_with(row->second, kStream)) {
      add(row->second.substr(kStream.size()), name, *span);  // else the host's row, which has the same calls once more
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

  void add(const std::string& stream, const std::string& name, const Span& span) {
    const double end = span.begin + span.duration;
    begin_ = operations_.empty() ? span.begin : std::min(begin_, span.begin);
    end_ = operations_.empty() ? end : std::max(end_, end);
    TracedOperation& operation = operations_[{stream, name}];
    operation.stream = stream;
    operation.name = name;
    ++operation.calls;
    operation.seconds += kMicrosecond * span.duration;
    operation.flops += span.flops;
    operation.bytes += span.bytes;
    operation.exchanged += span.exchanged;
  }

  std::map<double, std::string> rows_;
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
    const std::string path = directory + "/" + name;
    if (InputFile(path, Kind::kData).size() > kLargestTrace) {
      fail(Kind::kData,
           str(path, " is larger than ", human_bytes(kLargestTrace), ", so it is no trace of this program"),
           "move it out of the run's directory");
    }
    LineReader lines(path);
    for (std::string line; lines.next(line, kLongestEvent);) {
      if (!line.empty() && line.back() == ',') line.pop_back();
      reader.see(try_parse_json(line));
    }
    if (auto summary = reader.summary(name)) traces.push_back(std::move(*summary));
  }
  return traces;
}

}  // namespace tokamak
