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
  int64_t which;         // the call, or the point
  int stream = 0;        // of the record
  int64_t meeting = -1;  // of a collective on several ranks
};

struct Queue {
  int rank = 0;
  std::vector<Item> items;
  size_t next = 0;
  // The call at the head:
  bool arrived = false, running = false;
  double fixed = 0, work = 0, begin = 0;
  CallCost::Resource resource = CallCost::Resource::kDevice;

  bool done() const { return next == items.size(); }
  bool in_collective() const { return resource == CallCost::Resource::kLink; }
};

class Simulation {
 public:
  Simulation(const std::vector<SimulatedRank>& ranks, const SimulationOptions& options)
      : ranks_(ranks), options_(options) {
    for (size_t r = 0; r < ranks.size(); ++r) enqueue(static_cast<int>(r));
    reached_.assign(points_, false);
    step_.busy.assign(ranks.at(0).record->streams.size(), 0);
  }

  SimulatedStep run() {
    for (;;) {
      while (start_what_can()) {
      }
      if (!advance()) break;
    }
    for (const Queue& queue : queues_) {
      TOKAMAK_CHECK(queue.done(), "the simulated step waits forever: rank ", queue.rank, ", ",
                    queue.items.size() - queue.next, " entries of a stream left");
    }
    step_.seconds = now_;
    if (options_.steps > 1) keep_last_step();
    for (const SimulatedStep::Span& span : step_.spans) {
      if (span.rank == 0) step_.busy[span.stream] += span.end - span.begin;
    }
    return std::move(step_);
  }

 private:
  // State of a rank's host.
  struct Enqueued {
    std::map<int64_t, int64_t> last_point;  // of each event, as of this call
    std::map<int, int64_t> collectives;     // so far, by stream
  };
  // The end of a step of rank 0.
  struct End {
    int64_t point;
    double time, exposed;
  };

  void enqueue(int rank) {
    const StepRecord& record = *ranks_[rank].record;
    const size_t first = queues_.size();
    for (size_t s = 0; s < record.streams.size(); ++s) {
      queues_.push_back({});
      queues_.back().rank = rank;
    }
    Enqueued enqueued;
    for (int64_t step = 0; step < options_.steps; ++step) {
      enqueue_step(record, first, enqueued);
      if (rank != 0 || record.entries.empty()) continue;
      ends_.push_back({points_, 0, 0});
      queues_[first + record.entries.front().stream].items.push_back({StepRecord::What::kRecord, points_++});
    }
  }

  void enqueue_step(const StepRecord& record, size_t first, Enqueued& enqueued) {
    auto& [last_point, collectives] = enqueued;
    for (const StepRecord::Entry& entry : record.entries) {
      auto& items = queues_[first + entry.stream].items;
      switch (entry.what) {
        case StepRecord::What::kCall: {
          int64_t meeting = -1;
          const StepRecord::Distinct& call = record.calls[entry.which];
          if (call.kind == CallKind::kCollective && ranks_.size() > 1) {
            meeting = meeting_of(entry.stream, collectives[entry.stream]++);
          }
          items.push_back({entry.what, entry.which, entry.stream, meeting});
          break;
        }
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

  int64_t meeting_of(int stream, int64_t nth) {
    const auto [known, is_new] = meetings_.try_emplace({stream, nth}, std::ssize(came_));
    if (is_new) came_.push_back(0);
    return known->second;
  }

  // Passes events and starts calls at the heads of their queues. Returns whether anything changed.
  bool start_what_can() {
    bool changed = false;
    for (Queue& queue : queues_) {
      while (!queue.done() && !queue.running) {
        const Item& item = queue.items[queue.next];
        if (item.what == StepRecord::What::kRecord) {
          reached_[item.which] = true;
          for (End& end : ends_) {
            if (end.point == item.which) end = {end.point, now_, step_.exposed_communication};
          }
        } else if (item.what == StepRecord::What::kWait) {
          if (!reached_[item.which]) break;
        } else {
          changed = arrive(queue, item) || changed;
          break;
        }
        ++queue.next;
        changed = true;
      }
    }
    return changed;
  }

  bool arrive(Queue& queue, const Item& item) {
    bool changed = false;
    if (!queue.arrived) {
      const CallCost& cost = ranks_[queue.rank].costs[item.which];
      queue.arrived = changed = true;
      queue.fixed = cost.fixed;
      queue.work = cost.work;
      queue.resource = cost.resource;
      queue.begin = now_;
      if (item.meeting >= 0) ++came_[item.meeting];
    }
    if (item.meeting >= 0 && came_[item.meeting] < std::ssize(ranks_)) return changed;
    queue.running = true;
    return true;
  }

  // Advances to the end of the next phase of a call. False if nothing runs.
  bool advance() {
    std::vector<int> operations(ranks_.size()), transfers(ranks_.size()), collectives(ranks_.size());
    bool rank0_works = false, rank0_exchanges = false;
    for (const Queue& queue : queues_) {
      if (!queue.arrived) continue;
      const size_t r = queue.rank;
      (queue.in_collective() ? rank0_exchanges : rank0_works) |= queue.rank == 0;
      if (!queue.running) continue;
      if (queue.in_collective()) ++collectives[r];
      if (queue.fixed <= 0) ++(queue.in_collective() ? transfers : operations)[r];
    }
    const auto rate = [&](const Queue& queue) {
      const size_t r = queue.rank;
      if (queue.fixed > 0) return 1.0;
      if (queue.in_collective()) return (operations[r] > 0 ? options_.beside : 1.0) / transfers[r];
      return (collectives[r] > 0 ? 1 - options_.contention : 1.0) / operations[r];
    };
    double passes = std::numeric_limits<double>::infinity();
    for (const Queue& queue : queues_) {
      if (queue.running) passes = std::min(passes, (queue.fixed > 0 ? queue.fixed : queue.work) / rate(queue));
    }
    if (passes == std::numeric_limits<double>::infinity()) return false;
    std::vector<double> rates;
    for (const Queue& queue : queues_) rates.push_back(queue.running ? rate(queue) : 0);
    now_ += passes;
    if (rank0_exchanges && !rank0_works) step_.exposed_communication += passes;
    for (size_t q = 0; q < queues_.size(); ++q) {
      Queue& queue = queues_[q];
      if (!queue.running) continue;
      const bool fixed = queue.fixed > 0;
      double& left = fixed ? queue.fixed : queue.work;
      // The call that ends first ends exactly, despite rounding.
      const double phase = left / rates[q];
      left = phase <= passes * (1 + 1e-12) ? 0 : left - passes * rates[q];
      if (queue.fixed <= 0 && queue.work <= 0) finish(queue);
    }
    return true;
  }

  void finish(Queue& queue) {
    const Item& item = queue.items[queue.next++];
    step_.spans.push_back({queue.rank, item.stream, item.which, queue.begin, now_});
    queue.arrived = queue.running = false;
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

  const std::vector<SimulatedRank>& ranks_;
  SimulationOptions options_;
  std::vector<Queue> queues_;
  int64_t points_ = 0;
  std::vector<bool> reached_;                            // by point
  std::map<std::pair<int, int64_t>, int64_t> meetings_;  // by stream and number
  std::vector<int64_t> came_;                            // ranks, by meeting
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

SimulatedStep simulate(const std::vector<SimulatedRank>& ranks, const SimulationOptions& options) {
  return Simulation(ranks, options).run();
}

std::string SimulatedStep::trace(const std::vector<SimulatedRank>& ranks) const {
  std::vector<std::string> events;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const StepRecord& record = *ranks[r].record;
    ChromeTrace trace(static_cast<int>(r));
    for (size_t s = 0; s < record.streams.size(); ++s) {
      trace.name_row(static_cast<int>(s), str("stream ", record.streams[s], ", simulated"));
    }
    for (const Span& span : spans) {
      if (span.rank != static_cast<int>(r)) continue;
      const StepRecord::Distinct& call = record.calls[span.call];
      trace.add(span.stream, {.name = call.title,
                              .category = call.kind == CallKind::kCollective ? "collective" : "operation",
                              .begin = span.begin,
                              .end = span.end,
                              .detail = call.text,
                              .values = {{"flops", call.flops}, {"bytes", call.bytes}}});
    }
    events.push_back(trace.events());
  }
  return ChromeTrace::file(events);
}

}  // namespace tokamak
