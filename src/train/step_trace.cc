#include "train/step_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

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

// The events of one process, without the brackets of the list.
class Events {
 public:
  explicit Events(int rank) : rank_(rank) { name("process_name", 0, str("rank ", rank)); }

  void name(const char* what, int row, const std::string& name) {
    add({{"ph", "M"}, {"pid", rank_}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}});
  }
  // Seconds since 1970; the format has microseconds.
  void span(int row, const std::string& name, const char* category, double begin, double end, ordered_json args) {
    ordered_json event = {{"ph", "X"}, {"pid", rank_}, {"tid", row}, {"name", name}, {"cat", category}};
    event["ts"] = 1e6 * begin;
    event["dur"] = 1e6 * (end - begin);
    if (!args.empty()) event["args"] = std::move(args);
    add(event);
  }
  std::string text() const { return text_; }

 private:
  void add(const ordered_json& event) { text_ += str(text_.empty() ? "" : ",\n", event.dump()); }

  int rank_;
  std::string text_;
};

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
  timeline_.reset();
}

void StepTrace::write() {
  const std::vector<Timeline::Entry> entries = timeline_->entries();
  Events events(comm_.rank());
  events.name("thread_name", kStepsRow, "steps, on the host");
  events.name("thread_name", kHostRow, "host");
  const double unix_time = unix_seconds() - now_seconds(), start = unix_time + timeline_->start();
  for (const Span& span : spans_) {
    events.span(kStepsRow, str("step ", span.step), "step", unix_time + span.begin, unix_time + span.end, {});
  }
  std::map<std::string, int> rows;
  for (const Timeline::Entry& entry : entries) {
    const auto [known, is_new] = rows.try_emplace(entry.stream, kFirstStreamRow + static_cast<int>(rows.size()));
    if (is_new) events.name("thread_name", known->second, str("stream ", entry.stream));
    ordered_json args = {{"call", entry.text}, {"bytes", entry.bytes}};
    if (entry.flops > 0) args["flops"] = entry.flops;
    if (entry.exchanged > 0) args["exchanged_bytes"] = entry.exchanged;
    const char* const kind = category(entry.kind);
    events.span(known->second, entry.title, kind, start + entry.begin, start + entry.end, args);
    // Where a call only enqueues, that takes time of its own.
    if (!device_.uses_host_memory()) {
      events.span(kHostRow, entry.title, kind, start + entry.host_begin, start + entry.host_end, {});
    }
  }
  const std::vector<std::string> all = comm_.gather_all(comm_.rank() < kMostRanks ? events.text() : "");
  if (comm_.rank() != 0) return;
  std::string text;
  for (const std::string& part : all) text += part.empty() ? "" : str(text.empty() ? "" : ",\n", part);
  try {
    write_text_atomically(path_, "{\"traceEvents\": [\n" + text + "\n]}\n", Kind::kConfig);
    log::info("trace of steps ", spans_.front().step, " to ", spans_.back().step, " in ", path_,
              "; busy: ", busy_text(entries));
  } catch (const Error& error) {
    log::warning("no trace: ", error.what());  // not worth a run
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
