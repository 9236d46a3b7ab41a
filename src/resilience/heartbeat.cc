#include "resilience/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

Heartbeat Heartbeat::of(const RunProgress& progress, const FlightRecord& record, const Limits& limits) {
  const RunProgress::Reading reading = progress.read();
  const FlightRecord::Position position = record.position();
  Heartbeat beat{reading, ::getpid(), position.begun, position.collectives, limits.of_phase(reading.gaps)};
  const size_t length = std::min(position.inside.size(), beat.inside.size() - 1);
  std::memcpy(beat.inside.data(), position.inside.data(), length);
  return beat;
}

std::string Heartbeat::place() const {
  const char* const call = inside.data();
  return str(*call == 0 ? "outside of any call" : str("in ", call), ", phase ", name_of(phase), ", step ", step);
}

std::string Heartbeat::text() const {
  const char* const call = inside.data();
  return str("phase ", name_of(phase), ", step ", step, ", ", *call == 0 ? "between calls" : str("in ", call),
             ", after ", collectives, " collective(s) and ", begun, " call(s), no progress for ", fixed(idle, 1), " s");
}

std::string message(MessageKind kind, const std::string& body) { return static_cast<char>(kind) + body; }

std::string message(const Heartbeat& heartbeat) {
  return message(MessageKind::kHeartbeat, std::string(reinterpret_cast<const char*>(&heartbeat), sizeof(heartbeat)));
}

bool read_heartbeat(const std::string& bytes, Heartbeat& heartbeat) {
  Heartbeat read;
  if (bytes.size() != 1 + sizeof(read)) return false;
  std::memcpy(&read, bytes.data() + 1, sizeof(read));
  if (static_cast<uint32_t>(read.phase) >= kPhases) return false;
  read.inside.back() = 0;
  for (char& c : read.inside) {
    if (c != 0 && (c < ' ' || c > '~')) c = '?';
  }
  std::memcpy(&heartbeat, &read, sizeof(read));  // padding included
  return true;
}

}  // namespace tokamak
