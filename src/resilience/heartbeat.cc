#include "resilience/heartbeat.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/strings.h"

namespace tokamak {

Heartbeat Heartbeat::of(const RunProgress& progress, const FlightRecord& record, const Limits& limits) {
  const RunProgress::Reading reading = progress.read();
  const FlightRecord::Position position = record.position();
  Heartbeat beat = {.phase = reading.phase,
                    .pid = ::getpid(),
                    .step = reading.step,
                    .begun = position.begun,
                    .ended = position.ended,
                    .collectives = position.collectives,
                    .in_collective = position.in_collective,
                    .idle = reading.idle,
                    .limit = limits.of_phase(reading.gaps),
                    .gaps = reading.gaps,
                    .steps = reading.steps,
                    .computing = reading.computing};
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
  if (bytes.size() != 1 + sizeof(heartbeat)) return false;
  const char* const body = bytes.data() + 1;
  // A bool or phase of another value must not be read as one.
  if (static_cast<unsigned char>(body[offsetof(Heartbeat, in_collective)]) > 1) return false;
  int32_t phase = 0;
  std::memcpy(&phase, body + offsetof(Heartbeat, phase), sizeof(phase));
  if (phase < 0 || phase >= static_cast<int32_t>(kPhases)) return false;
  std::memcpy(&heartbeat, body, sizeof(heartbeat));
  heartbeat.inside.back() = 0;
  for (char& c : heartbeat.inside) {
    if (c != 0 && (c < ' ' || c > '~')) c = '?';
  }
  return true;
}

}  // namespace tokamak
