#include "resilience/flight_record.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr const char* kHost = "host";  // the stream of calls that have none
constexpr const char* kWait = "wait";  // for what another stream does

}  // namespace

// Under the lock.
FlightRecord::Entry& FlightRecord::add(CallKind kind, const char* stream, const char* name, const char* label,
                                       int64_t now) {
  Entry& entry = ring_[static_cast<size_t>(begun_) % kCalls];
  entry.number = ++begun_;
  entry.kind = kind;
  entry.stream = stream;
  entry.name = name;
  entry.label = label;
  entry.begin = now;
  entry.end = 0;
  entry.arguments = 0;
  if (kind == CallKind::kCollective) ++collectives_;
  return entry;
}

void FlightRecord::begin(Stream& stream, const Call& call) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  Entry& entry = add(call.kind, stream.name(), call.name, call.label, now);
  for (const Operand& operand : call.operands) {
    if (!*operand.tensor) continue;
    entry.argument[entry.arguments++] = {operand.name, operand.tensor->dtype(), operand.access,
                                         operand.tensor->shape()};
  }
}

void FlightRecord::end(Stream& stream, const Call& call) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  close(stream.name(), call.name, now);
}

void FlightRecord::host_waits(Stream& stream) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  add(CallKind::kCollective, stream.name(), kWait, "for a collective", now);
  --collectives_;  // a rank whose collective is over already does not wait: no call that all ranks make
}

void FlightRecord::host_waited(Stream& stream) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  close(stream.name(), kWait, now);
}

void FlightRecord::begin(const char* name) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  add(CallKind::kCollective, kHost, name, "", now);
}

void FlightRecord::end(const char* name) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  close(kHost, name, now);
}

// Of the call of this name that began last; it is the newest entry but where threads call at the same time.
void FlightRecord::close(const char* stream, const char* name, int64_t now) {
  ++ended_;
  for (int64_t back = 1; back <= std::min<int64_t>(begun_, kCalls); ++back) {
    Entry& entry = ring_[static_cast<size_t>(begun_ - back) % kCalls];
    if (entry.end != 0 || entry.stream != stream || entry.name != name) continue;
    entry.end = now;
    if (entry.kind == CallKind::kCollective && std::this_thread::get_id() == training_) {
      progress_.add_collective(entry.end - entry.begin);
    }
    return;
  }
}

FlightRecord::Position FlightRecord::position() const {
  const std::lock_guard lock(mutex_);
  Position position = {.begun = begun_, .ended = ended_, .collectives = collectives_};
  for (int64_t back = 1; back <= std::min<int64_t>(begun_, kCalls); ++back) {
    const Entry& entry = ring_[static_cast<size_t>(begun_ - back) % kCalls];
    if (entry.end != 0) continue;
    if (position.inside.empty()) position.inside = entry.title();
    position.in_collective = position.in_collective || entry.kind == CallKind::kCollective;
  }
  return position;
}

std::string FlightRecord::text() const {
  const std::lock_guard lock(mutex_);
  const int64_t now = RunProgress::now();
  std::string lines;
  for (int64_t back = std::min<int64_t>(begun_, kCalls); back >= 1; --back) {
    lines += str("  ", ring_[static_cast<size_t>(begun_ - back) % kCalls].text(now), "\n");
  }
  return lines;
}

std::string FlightRecord::Entry::title() const { return *label == 0 ? name : str(name, " ", label); }

std::string FlightRecord::Entry::text(int64_t now) const {
  std::string operands;
  for (size_t i = 0; i < arguments; ++i) {
    const Argument& a = argument[i];
    const char* const mark = a.access == Access::kRead ? "" : a.access == Access::kWrite ? "-> " : "+= ";
    operands += str(i == 0 ? "  " : ", ", mark, a.name, " ", name_of(a.dtype), " ", a.shape.text());
  }
  const std::string took =
      end == 0 ? "UNDER WAY" : str("took ", fixed(static_cast<double>(end - begin) / 1e6, 3), " ms");
  return str("#", number, "  ", fixed(static_cast<double>(now - begin) / 1e9, 3), " s ago, ", took, "  [", stream, "] ",
             title(), operands);
}

}  // namespace tokamak
