// Collects the contents of a page from the files of a run.
#include <algorithm>
#include <cmath>

#include "monitor/history.h"
#include "monitor/jsonl.h"
#include "report/page.h"

namespace tokamak {

namespace {

constexpr size_t kMostEvents = 500, kMostSamples = 60, kMostBytesOfSamples = 500'000;
constexpr int64_t kFewestColumns = 10, kMostColumns = 120;  // of the map of tensors

// Later starts replace the samples of steps that they train again, as in Curves.
void add_samples(std::vector<MetricRecord>& samples, const MetricRecord& record) {
  if (!sets_course(record)) return;
  std::erase_if(samples, [&](const MetricRecord& one) {
    return one.step > record.step || (one.step == record.step && !record.samples.empty());
  });
  if (!record.samples.empty()) samples.push_back(record);
}

// Removes the oldest values. Returns how many it removed.
template <class Value>
int64_t keep_last(std::vector<Value>& values, size_t count) {
  const auto removed = static_cast<std::ptrdiff_t>(values.size() - std::min(values.size(), count));
  values.erase(values.begin(), values.begin() + removed);
  return removed;
}

size_t samples_that_fit(const std::vector<MetricRecord>& samples) {
  size_t count = 0, bytes = 0;
  for (auto one = samples.rbegin(); one != samples.rend() && count < kMostSamples; ++one, ++count) {
    for (const SampleText& text : one->samples) bytes += text.prompt.size() + text.text.size();
    if (bytes > kMostBytesOfSamples) break;
  }
  return count;
}

}  // namespace

PageRun read_page_run(const std::string& directory, const PageLimits& limits, std::optional<bool> holds_lock) {
  PageRun run{.name = directory};
  Curves curves;
  TensorMapBuilder tensors;
  run.report = read_report(directory, holds_lock, [&](const MetricRecord& record) {
    curves.see(record);
    tensors.see(record);  // older versions wrote statistics into metrics.jsonl
    add_samples(run.samples, record);
    if (record.is("ready")) {
      run.memory_planned = std::llround(record.value_or("memory/planned", 0));
      run.device = record.event->text("device");
    } else if (record.event && !record.is("checkpoint")) {
      run.events.push_back({0, record});
    }
  });
  read_records(
      directory + "/tensors.jsonl", [&](const MetricRecord& record) { tensors.see(record); }, ReadTensors::kYes);
  const std::vector<StartReport>& starts = run.report.starts;
  size_t start = 0;
  for (PageEvent& event : run.events) {
    while (start + 1 < starts.size() && event.record.time >= starts[start + 1].exec) ++start;
    event.start = static_cast<int64_t>(start);
  }
  run.events_left_out = keep_last(run.events, kMostEvents);
  run.samples_left_out = keep_last(run.samples, samples_that_fit(run.samples));
  for (const std::string& name : curves.names()) {
    const std::vector<CurvePoint>& points = curves.of(name);
    if (!points.empty()) run.series.push_back({name, std::ssize(points), downsample(points, limits.points)});
  }
  if (tensors.rows() > 0) {
    run.tensors = tensors.map(std::clamp(limits.cells / tensors.rows(), kFewestColumns, kMostColumns));
  }
  return run;
}

}  // namespace tokamak
