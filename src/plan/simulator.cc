#include "plan/simulator.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "monitor/chrome_trace.h"

namespace tokamak {

namespace {

// An entry of a stream: a call, or a point of an event that it sets or waits for.
struct Item {
  StepRecord::What what;
  int64_t which;  // the call, or the point
};

struct Queue {
  std::vector<Item> items;
  size_t next = 0;
  bool running = false;  // the call at the head, with what is left of it:
  CallCost left;
  double begin = 0;

  bool done() const { return next == items.size(); }
  bool in_collective() const { return left.resource == CallCost::Resource::kLink; }
};

class Simulation {
 public:
  Simulation(const StepRecord& record, const std::vector<CallCost>& costs, const SimulationOptions& options)
      : record_(record), costs_(costs), options_(options), queues_(record.streams.size()) {
    std::map<int64_t, int64_t> last_point;  // of each event, so far in the order of the host's calls
    for (int64_t step = 0; step < options.steps; ++step) {
      enqueue_step(last_point);
      if (record.entries.empty()) continue;
      ends_.push_back({points_, 0, 0});
      queues_[record.entries.front().stream].items.push_back({StepRecord::What::kRecord, points_++});
    }
    reached_.assign(points_, false);
    step_.busy.assign(queues_.size(), 0);
  }

  SimulatedStep run() {
    do {
      start_what_can();
    } while (advance());
    for (const Queue& queue : queues_) TOKAMAK_CHECK(queue.done(), "the simulated step waits forever");
    step_.seconds = now_;
    if (options_.steps > 1) keep_last_step();
    for (const SimulatedStep::Span& span : step_.spans) step_.busy[span.stream] += span.end - span.begin;
    return std::move(step_);
  }

 private:
  // The end of a step.
  struct End {
    int64_t point;
    double time, exposed;
  };

  void enqueue_step(std::map<int64_t, int64_t>& last_point) {
    for (const StepRecord::Entry& entry : record_.entries) {
      std::vector<Item>& items = queues_[entry.stream].items;
      switch (entry.what) {
        case StepRecord::What::kCall:
          items.push_back({entry.what, entry.which});
          break;
        case StepRecord::What::kRecord:
          last_point[entry.which] = points_;
          items.push_back({entry.what, points_++});
          break;
        case StepRecord::What::kWait:
          if (const auto known = last_point.find(entry.which); known != last_point.end()) {
            items.push_back({entry.what, known->second});
          }
          break;
      }
    }
  }

  // Passes events and starts calls at the heads of the queues, until nothing changes.
  void start_what_can() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Queue& queue : queues_) {
        while (!queue.done() && !queue.running) {
          const Item& item = queue.items[queue.next];
          if (item.what == StepRecord::What::kWait && !reached_[item.which]) break;
          changed = true;
          if (item.what == StepRecord::What::kCall) {
            queue.running = true;
            queue.left = costs_[item.which];
            queue.begin = now_;
            break;
          }
          if (item.what == StepRecord::What::kRecord) reach(item.which);
          ++queue.next;
        }
      }
    }
  }

  void reach(int64_t point) {
    reached_[point] = true;
    for (End& end : ends_) {
      if (end.point == point) end = {point, now_, step_.exposed_communication};
    }
  }

  // Advances to the end of the next phase of a call. False if nothing runs.
  bool advance() {
    int operations = 0, transfers = 0, collectives = 0;
    bool works = false;
    for (const Queue& queue : queues_) {
      if (!queue.running) continue;
      if (queue.in_collective()) ++collectives;
      works = works || !queue.in_collective();
      if (queue.left.fixed <= 0) ++(queue.in_collective() ? transfers : operations);
    }
    const auto rate = [&](const Queue& queue) {
      if (queue.left.fixed > 0) return 1.0;
      if (queue.in_collective()) return (operations > 0 ? options_.beside : 1.0) / transfers;
      return (collectives > 0 ? 1 - options_.contention : 1.0) / operations;
    };
    double passes = std::numeric_limits<double>::infinity();
    std::vector<double> rates;
    for (const Queue& queue : queues_) {
      rates.push_back(queue.running ? rate(queue) : 0);
      if (!queue.running) continue;
      passes = std::min(passes, (queue.left.fixed > 0 ? queue.left.fixed : queue.left.work) / rates.back());
    }
    if (passes == std::numeric_limits<double>::infinity()) return false;
    now_ += passes;
    if (collectives > 0 && !works) step_.exposed_communication += passes;
    for (size_t q = 0; q < queues_.size(); ++q) {
      Queue& queue = queues_[q];
      if (!queue.running) continue;
      double& left = queue.left.fixed > 0 ? queue.left.fixed : queue.left.work;
      // The call that ends first ends exactly, despite rounding.
      const double phase = left / rates[q];
      left = phase <= passes * (1 + 1e-12) ? 0 : left - passes * rates[q];
      if (queue.left.fixed > 0 || queue.left.work > 0) continue;
      step_.spans.push_back({static_cast<int>(q), queue.items[queue.next++].which, queue.begin, now_});
      queue.running = false;
    }
    return true;
  }

  void keep_last_step() {
    const End begin = ends_[ends_.size() - 2], end = ends_.back();
    step_.seconds = end.time - begin.time;
    step_.exposed_communication = end.exposed - begin.exposed;
    std::vector<SimulatedStep::Span> spans;
    for (SimulatedStep::Span span : step_.spans) {
      span.begin = std::max(span.begin, begin.time) - begin.time;
      span.end = std::min(span.end, end.time) - begin.time;
      if (span.begin < span.end) spans.push_back(span);
    }
    step_.spans = std::move(spans);
  }

  const StepRecord& record_;
  const std::vector<CallCost>& costs_;
  SimulationOptions options_;
  std::vector<Queue> queues_;  // by stream
  int64_t points_ = 0;
  std::vector<bool> reached_;  // by point
  std::vector<End> ends_;
  double now_ = 0;
  SimulatedStep step_;
};

}  // namespace

std::vector<CallCost> costs_of(const StepRecord& record, const Machine& machine, const Ops& ops) {
  std::vector<CallCost> costs;
  for (const StepRecord::Distinct& call : record.calls) costs.push_back(cost_of(call, machine, ops));
  return costs;
}

SimulatedStep simulate(const StepRecord& record, const std::vector<CallCost>& costs, const SimulationOptions& options) {
  return Simulation(record, costs, options).run();
}

std::string SimulatedStep::trace(const StepRecord& record) const {
  ChromeTrace trace(0);
  for (size_t s = 0; s < record.streams.size(); ++s) {
    trace.name_row(static_cast<int>(s), str("stream ", record.streams[s], ", simulated"));
  }
  for (const Span& span : spans) {
    const StepRecord::Distinct& call = record.calls[span.call];
    trace.add(span.stream, {.name = call.title,
                            .category = call.kind == CallKind::kCollective ? "collective" : "operation",
                            .begin = span.begin,
                            .end = span.end,
                            .detail = call.text,
                            .values = {{"flops", call.flops}, {"bytes", call.bytes}}});
  }
  return ChromeTrace::file({trace.events()});
}

}  // namespace tokamak
