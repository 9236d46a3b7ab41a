#include "train/step_trace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "monitor/chrome_trace.h"

namespace tokamak {

namespace {

constexpr double kDay = 86400;  // seconds
constexpr int kStepsRow = 0, kHostRow = 1, kFirstStreamRow = 2;

const char* category(CallKind kind) {
  switch (kind) {
    case CallKind::kOperation:
      return "operation";
    case CallKind::kCopy:
      return "copy";
    case CallKind::kCollective:
      return "collective";
    case CallKind::kGraph:
      return "graph";
  }
  return "?";
}

}  // namespace

StepTrace::StepTrace(TracedSteps steps, Comm& comm, Device& device, std::string path)
    : steps_(steps), comm_(comm), device_(device), path_(std::move(path)) {}

StepTrace::~StepTrace() = default;

void StepTrace::begin(int64_t step) {
  if (!steps_.contains(step)) return;
  if (!timeline_) watched_.emplace(device_, timeline_.emplace(device_));
  spans_.push_back({step, now_seconds(), 0});
}

void StepTrace::end(int64_t step) {
  if (!steps_.contains(step)) return;
  spans_.back().end = now_seconds();
  if (step != steps_.last) return;
  watched_.reset();
  write();
  forget();
}

void StepTrace::forget() {
  watched_.reset();
  timeline_.reset();
  spans_.clear();
}

void StepTrace::write() {
  const std::vector<Timeline::Entry> entries = timeline_->entries();
  // Since midnight UTC: the same on all ranks, and in a double's microseconds exact to a nanosecond.
  const double clock = std::fmod(unix_seconds(), kDay) - now_seconds(), start = clock + timeline_->start();
  ChromeTrace trace(comm_.rank());
  trace.name_row(kStepsRow, "steps, on the host");
  for (const Span& span : spans_) {
    trace.add(
        kStepsRow,
        {.name = str("step ", span.step), .category = "step", .begin = clock + span.begin, .end = clock + span.end});
  }
  // A call that only enqueues takes time of its own.
  const bool enqueues = !device_.uses_host_memory();
  if (enqueues) trace.name_row(kHostRow, "host");
  std::map<std::string, int> rows;
  for (const Timeline::Entry& entry : entries) {
    const auto [known, is_new] = rows.try_emplace(entry.stream, kFirstStreamRow + static_cast<int>(rows.size()));
    if (is_new) trace.name_row(known->second, str("stream ", entry.stream));
    ChromeTrace::Span span{.name = entry.title,
                           .category = category(entry.kind),
                           .begin = start + entry.begin,
                           .end = start + entry.end,
                           .detail = entry.text,
                           .values = {{"bytes", entry.bytes}}};
    if (entry.flops > 0) span.values.push_back({"flops", entry.flops});
    if (entry.exchanged > 0) span.values.push_back({"exchanged_bytes", entry.exchanged});
    trace.add(known->second, span);
    if (!enqueues) continue;
    trace.add(kHostRow, {.name = entry.title,
                         .category = category(entry.kind),
                         .begin = start + entry.host_begin,
                         .end = start + entry.host_end});
  }
  const std::vector<std::string> all = comm_.gather_all(comm_.rank() < kMostRanks ? trace.events() : "");
  if (comm_.rank() != 0) return;
  try {
    write_text_atomically(path_, ChromeTrace::file(all), Kind::kConfig);
    log::info("trace of steps ", spans_.front().step, " to ", spans_.back().step, " in ", path_,
              "; busy: ", busy_text(entries));
  } catch (const Error& error) {
    log::warning("no trace: ", error.what());  // a trace is not worth ending the run for
  }
}

std::string busy_text(const std::vector<Timeline::Entry>& entries) {
  struct Busy {
    std::string stream;
    double seconds = 0;
  };
  std::vector<Busy> streams;
  double begin = 0, end = 0;
  for (const Timeline::Entry& entry : entries) {
    begin = &entry == &entries.front() ? entry.begin : std::min(begin, entry.begin);
    end = std::max(end, entry.end);
    auto known = std::find_if(streams.begin(), streams.end(), [&](const Busy& b) { return b.stream == entry.stream; });
    if (known == streams.end()) known = streams.insert(known, {entry.stream});
    known->seconds += entry.end - entry.begin;  // a stream does one thing at a time
  }
  std::string text;
  for (const Busy& busy : streams) {
    text += str(text.empty() ? "" : ", ", busy.stream, " ", fixed(100 * busy.seconds / (end - begin), 1), "%");
  }
  return str(text, " of ", fixed(end - begin, 3), " s");
}

}  // namespace tokamak
