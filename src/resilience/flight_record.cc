#include "resilience/flight_record.h"

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr const char* kHost = "host";  // printed in place of a stream
constexpr const char* kWait = "wait";  // name of the host's wait for a stream

}  // namespace

void FlightRecord::open(const char* stream, const Call& call, bool counts) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  Entry& entry = ring_[static_cast<size_t>(begun_) % kCalls];
  entry.number = ++begun_;
  entry.kind = call.kind;
  entry.stream = stream;
  entry.name = call.name;
  entry.label = call.label;
  entry.begin = now;
  entry.end = 0;
  entry.arguments = 0;
  if (counts) ++collectives_;
  for (const Operand& operand : call.operands) {
    if (!*operand.tensor) continue;
    entry.argument[entry.arguments++] = {operand.name, operand.tensor->dtype(), operand.access,
                                         operand.tensor->shape()};
  }
}

// Ends the newest open call of this name. Other threads may have begun calls since.
void FlightRecord::close(const char* stream, const char* name) {
  const int64_t now = progress_.tick();
  const std::lock_guard lock(mutex_);
  for (int64_t back = 1; back <= kept(); ++back) {
    Entry& entry = ring_[static_cast<size_t>(begun_ - back) % kCalls];
    if (entry.end != 0 || entry.stream != stream || entry.name != name) continue;
    entry.end = now;
    if (entry.kind == CallKind::kCollective && std::this_thread::get_id() == training_) {
      progress_.add_collective(entry.end - entry.begin);
    }
    return;
  }
}

void FlightRecord::begin(Stream& stream, const Call& call) {
  open(stream.name(), call, call.kind == CallKind::kCollective);
}
void FlightRecord::end(Stream& stream, const Call& call) { close(stream.name(), call.name); }

void FlightRecord::host_waits(Stream& stream) {
  open(stream.name(), {.kind = CallKind::kCollective, .name = kWait, .label = "for a collective"}, false);
}
void FlightRecord::host_waited(Stream& stream) { close(stream.name(), kWait); }

void FlightRecord::begin(const char* name) { open(kHost, {.kind = CallKind::kCollective, .name = name}, true); }
void FlightRecord::end(const char* name) { close(kHost, name); }

FlightRecord::Position FlightRecord::position() const {
  const std::lock_guard lock(mutex_);
  Position position = {.begun = begun_, .collectives = collectives_, .inside = ""};
  for (int64_t back = 1; back <= kept() && position.inside.empty(); ++back) {
    if (newest(back).end == 0) position.inside = newest(back).title();
  }
  return position;
}

std::string FlightRecord::text() const {
  const std::lock_guard lock(mutex_);
  const int64_t now = RunProgress::now();
  std::string lines;
  for (int64_t back = kept(); back >= 1; --back) lines += str("  ", newest(back).text(now), "\n");
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
