#include "report/page_run.h"

#include <algorithm>
#include <cmath>

#include "monitor/history.h"

namespace tokamak {

namespace {

constexpr size_t kMostEvents = 500;
constexpr size_t kMostSamples = 60, kMostBytesOfSamples = 500'000;
constexpr int64_t kFewestColumns = 10, kMostColumns = 120;  // of the map of tensors

// Which events a page lists, and of which start each is.
class EventList {
 public:
  explicit EventList(const RunReport& report) : report_(report) {}

  void see(const MetricRecord& record) {
    if (!record.event) return;
    const auto last = static_cast<int64_t>(report_.starts.size()) - 1;
    while (start_ < last && record.time >= report_.starts[static_cast<size_t>(start_ + 1)].exec) ++start_;
    if (!record.is("ready") && !record.is("checkpoint")) events_.push_back({start_, record});
  }

  void give(PageRun& run) {
    if (events_.size() > kMostEvents) {
      run.events_left_out = static_cast<int64_t>(events_.size() - kMostEvents);
      events_.erase(events_.begin(), events_.begin() + run.events_left_out);
    }
    run.events = std::move(events_);
  }

 private:
  const RunReport& report_;
  int64_t start_ = 0;
  std::vector<PageEvent> events_;
};

// Saves report their seconds in events. One that was written beside training is recorded steps later.
class SaveHistory {
 public:
  void see(MetricRecord record) {
    if (record.is("checkpoint")) {
      std::erase_if(saves_, [&](const MetricRecord& save) { return save.step >= record.step; });
      record.event.reset();
      saves_.push_back(std::move(record));
    }
  }
  const std::vector<MetricRecord>& records() const { return saves_; }

 private:
  std::vector<MetricRecord> saves_;
};

size_t bytes_of(const MetricRecord& record) {
  size_t bytes = 0;
  for (const SampleText& one : record.samples) bytes += one.prompt.size() + one.text.size();
  return bytes;
}

// So many of them, evenly chosen, the first and the last among them.
std::vector<MetricRecord> evenly_chosen(const std::vector<MetricRecord>& all, size_t count) {
  std::vector<MetricRecord> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(all[count > 1 ? i * (all.size() - 1) / (count - 1) : all.size() - 1]);
  return chosen;
}

// As many samples as a page has room for.
void give_samples(const std::vector<MetricRecord>& history, PageRun& run) {
  std::vector<MetricRecord> all;
  for (const MetricRecord& record : history) {
    if (!record.samples.empty()) all.push_back(record);
  }
  for (size_t count = std::min(all.size(), kMostSamples); count > 0; count = count * 3 / 4) {
    run.samples = evenly_chosen(all, count);
    size_t bytes = 0;
    for (const MetricRecord& record : run.samples) bytes += bytes_of(record);
    if (bytes <= kMostBytesOfSamples) break;
  }
  run.samples_left_out = static_cast<int64_t>(all.size() - run.samples.size());
}

}  // namespace

PageRun read_page_run(const std::string& directory, const PageLimits& limits, std::optional<bool> holds_lock) {
  TensorMapBuilder tensors;
  const std::vector<MetricRecord> records =
      read_run_records(directory, [&](const MetricRecord& record) { tensors.see(record); });
  PageRun run{.name = directory, .report = report_of(directory, records, holds_lock)};
  run.traces = read_traces(directory);
  History history;
  SaveHistory saves;
  EventList events(run.report);
  for (const MetricRecord& record : records) {
    history.see(record);
    saves.see(record);
    events.see(record);
    if (record.is("ready")) {
      run.memory_planned = std::llround(record.value_or("memory/planned", 0));
      run.memory_committed = std::llround(record.value_or("memory/committed", 0));
      run.device = record.event->text("device");
      run.peak_flops = record.value_or("peak/flops", 0);
      run.memory_rate = record.value_or("peak/memory_rate", 0);
    }
  }
  events.give(run);
  give_samples(history.records(), run);
  if (tensors.rows() > 0) {
    run.tensors = tensors.map(std::clamp(limits.cells / tensors.rows(), kFewestColumns, kMostColumns));
  }
  const int64_t begin = run.report.starts.front().exec;
  const TokenScale scale(history.records());
  run.series = series_of(history.records(), begin, limits.points, scale);
  for (Series& series : series_of(saves.records(), begin, limits.points, scale))
    run.series.push_back(std::move(series));
  return run;
}

}  // namespace tokamak
